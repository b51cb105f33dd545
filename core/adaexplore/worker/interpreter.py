"""Make Triton's interpreter show what a GPU does where it is kinder than one (triton 3.2 to 3.6, read in its source).

A masked lane without ``other`` is undefined on a GPU and zero in the interpreter; ``tl.maximum``, ``tl.minimum`` and
``tl.clamp`` drop NaN on a GPU unless told to propagate it, and keep it in the interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime import interpreter


def _without_nan(builder: Any) -> None:
    builder.create_maxnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmax)
    builder.create_minnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmin)
    clamp = getattr(builder, "create_clampf", None)
    if clamp is None:
        return

    def create_clampf(self: Any, arg: Any, lo: Any, hi: Any, propagate_nans: Any) -> Any:
        if "ALL" in str(propagate_nans):
            return clamp(self, arg, lo, hi, propagate_nans)
        return self.ternary_op(arg, lo, hi, lambda x, low, high: np.fmin(np.fmax(x, low), high))

    builder.create_clampf = create_clampf


def _poison_masked_lanes(builder: Any) -> None:
    load = builder.create_masked_load

    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *options: Any, **named: Any) -> Any:
        loaded = load(self, ptrs, mask, other, *options, **named)
        if other is None and np.issubdtype(loaded.data.dtype, np.floating):
            loaded.data = np.where(mask.data, loaded.data, np.array(np.nan, loaded.data.dtype))
        return loaded

    builder.create_masked_load = create_masked_load


def interpret_as_a_gpu_would() -> None:
    """Change the interpreter of this process, once."""
    builder = interpreter.InterpreterBuilder
    if getattr(builder, "_adaexplore", False):
        return
    _without_nan(builder)
    _poison_masked_lanes(builder)
    builder._adaexplore = True
