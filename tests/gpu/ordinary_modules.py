"""Modules of ordinary size, as found in a 7B model; measured for the README."""

import torch
from torch import nn

ROWS, WIDTH, INNER, TOKENS = 8192, 4096, 11008, 2048


class RMSNorm(nn.Module):
    """As in Llama: statistics in fp32, the gain in the activations' dtype."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return normed.to(x.dtype) * self.weight


class LinearSiLU(nn.Module):
    """The gate projection of a Llama MLP."""

    def __init__(self, dim: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(self.gate(x))


class LayerNormResidual(nn.Module):
    """Add, normalize, and hand on both."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = x + residual
        return self.norm(hidden), hidden
