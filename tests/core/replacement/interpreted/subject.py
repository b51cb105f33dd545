"""A module whose forward reads everything a guard must watch, and a right kernel for it."""

import torch
from torch import nn
from torch.nn import functional as F

FACTOR = 2.0


class Settings:
    """Stands for a configuration object: the guard watches its fields."""

    def __init__(self) -> None:
        self.bias = 0.5


class GainConfig(Settings):
    """Named like one."""


CONFIG = GainConfig()


class Gain(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim) + 0.5)
        self.register_parameter("bias", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight if self.bias is None else x * self.weight + self.bias


# adaexplore: init(dim=24) forward(x=f32[4, 6, 24], y=f32[4, 6, 24], power=2, shift=0.25) mode=train
class Mixed(nn.Module):
    def __init__(self, dim: int, eps: float = 0.125) -> None:
        super().__init__()
        self.eps = eps
        self.flag = True
        self.limits = (1, 2)
        self.gain = Gain(dim)
        self.layers = nn.Sequential(nn.ReLU())
        self.weight = nn.Parameter(torch.rand(dim) + 0.5)
        self.register_buffer("offset", torch.rand(dim))

    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return x * FACTOR + CONFIG.bias

    def forward(self, x: torch.Tensor, y: torch.Tensor, power: int = 1, *, shift: float = 0.5) -> torch.Tensor:
        z = self.helper(x + self.gain(y))
        if self.flag and not hasattr(self, "adapter"):
            z = z + self.eps
        if not self.training:
            z = z * 3
        if power == 2:
            z = z * z
        for layer in self.layers:
            z = layer(z)
        return z * self.weight + self.offset + shift * self.limits[0]


class Scripted(nn.Module):
    """What TorchScript can compile: it needs the globals of this file."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, power: int = 1, shift: float = 0.5) -> torch.Tensor:
        return F.relu(x + y) * power + shift
