"""The norm before each attention and MLP block of a 7B language model, with the residual sum it starts from."""

import torch
from torch import nn


# adaexplore: init(dim=4096) forward(hidden_states=f32[2, 2048, 4096], residual=f32[2, 2048, 4096])
class ResidualRMSNorm(nn.Module):
    """Add a block's output to the residual stream and normalize the sum."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, hidden_states: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Give the normalized sum, for the next block, and the sum itself, which the stream goes on with."""
        residual = residual + hidden_states
        variance = residual.pow(2).mean(-1, keepdim=True)
        normalized = residual * torch.rsqrt(variance + self.eps)
        return self.weight * normalized, residual
