"""Triton kernels for model.py, written by adaexplore.

Each section replaces the forward of one class of that file where its guard says that the verified kernel applies; the
original forward runs everywhere else. The line `@__import__(...)` above the class switches it on; without that line
nothing here is used. "Revert to PyTorch" in the editor removes both.
"""
# adaexplore-sidecar: format 1
# fmt: off
# isort: skip_file
# ruff: noqa
# ruff: noqa: PGH004
# mypy: ignore-errors

import functools
import os
from types import SimpleNamespace

import torch

try:
    import triton
    import triton.language as tl

    HAS_TRITON = True
except ImportError:  # no Triton on this platform: the original forward runs

    def _keep(kernel=None, **options):
        return kernel if kernel is not None else _keep

    triton = SimpleNamespace(jit=_keep)
    tl = SimpleNamespace(constexpr=type("constexpr", (), {}))
    HAS_TRITON = False


# --- adaexplore: RMSNorm ---
# receipt 1f171405
#   source_hash: "0123456789abcdef"
#   task_id: "task-1"
#   candidate_id: "fedcba9876543210"
#   run_id: "run-1"
#   date: "2026-03-01"
#   policy: "strict"
#   workload: "x=bfloat16[8192, 4096]: shapes in the # adaexplore: comment, line 7"
#   torch: "2.11.0"
#   triton: "3.6.0"
#   how: "gpu"
#   relative_error: 1.5e-07
#   max_error: 2.25e-06
#   eager_relative_error: 1e-07
#   eager_max_error: 3e-06
#   gpu: "NVIDIA H200"
#   speedup: 2.3149
#   speedup_over_compile: 1.2
#   checksum: 7bbf78f0f546c05a

@triton.jit
def _triton_rms_norm_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def triton_rms_norm(cls):
    cls.replaced_by = "triton_rms_norm"
    return cls
# --- end of RMSNorm ---


# --- adaexplore: Outer.Inner ---
# receipt 5fd76b8e
#   source_hash: "0123456789abcdef"
#   task_id: "task-1"
#   candidate_id: "fedcba9876543210"
#   run_id: "run-1"
#   date: "2026-03-01"
#   policy: "strict"
#   workload: "x=bfloat16[8192, 4096]: shapes in the # adaexplore: comment, line 7"
#   torch: "2.11.0"
#   triton: "3.6.0"
#   how: "interpreter"
#   relative_error: 1.5e-07
#   max_error: 2.25e-06
#   eager_relative_error: 1e-07
#   eager_max_error: 3e-06
#   gpu: ""
#   speedup: null
#   speedup_over_compile: null
#   checksum: 9adf8707fd131711

@triton.jit
def _triton_outer_inner_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def triton_outer_inner(cls):
    cls.replaced_by = "triton_outer_inner"
    return cls
# --- end of Outer.Inner ---
