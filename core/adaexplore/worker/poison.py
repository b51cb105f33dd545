"""Memory that shows what was not written, and what was written beside it."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_GUARD_ELEMENTS = 256
"""On either side of each tensor; a multiple of every vector width, so that alignment stays."""
_aten = torch.ops.aten
_ALLOCATIONS = (_aten.empty.memory_format, _aten.empty_like.default, _aten.new_empty.default,
                _aten.empty_strided.default)  # fmt: skip


def _poison(dtype: torch.dtype) -> float | int:
    return float("nan") if dtype.is_floating_point else 77


def is_poison(tensor: torch.Tensor) -> torch.Tensor:
    """Tell where a tensor holds what was there before anything was written."""
    return tensor.isnan() if tensor.dtype.is_floating_point else tensor == _poison(tensor.dtype)


class PoisonedMemory(TorchDispatchMode):
    """While active, fresh tensors are full of NaN (integers: 77) and stand between guards of the same."""

    def __init__(self) -> None:
        super().__init__()
        self._guarded: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func not in _ALLOCATIONS or not out.is_contiguous() or out.dtype.is_complex or out.dtype is torch.bool:
            return out
        base = torch.full((out.numel() + 2 * _GUARD_ELEMENTS,), _poison(out.dtype), dtype=out.dtype, device=out.device)
        self._guarded.append(base)
        return base[_GUARD_ELEMENTS : _GUARD_ELEMENTS + out.numel()].view(out.shape)

    def writes_outside(self) -> bool:
        """Tell whether any guard was written to."""
        for base in self._guarded:
            for guard in (base[:_GUARD_ELEMENTS], base[-_GUARD_ELEMENTS:]):
                if not bool(is_poison(guard).all()):
                    return True
        return False
