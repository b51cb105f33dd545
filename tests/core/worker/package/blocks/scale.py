import torch
from torch import nn

from ..settings import ScaleConfig, floor  # noqa: TID252 - users write such imports


# adaexplore: build=make inputs=inputs
class Scale(nn.Module):
    def __init__(self, config: ScaleConfig) -> None:
        super().__init__()
        self.config = config
        self.gain = nn.Parameter(torch.ones(config.width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * max(self.config.factor, floor()) * self.gain


def make() -> nn.Module:
    return nn.Sequential(Scale(ScaleConfig()))


def inputs() -> tuple[torch.Tensor]:
    return (torch.randn(5, 16),)
