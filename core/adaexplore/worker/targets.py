"""The CUDA architectures that kernels can be compiled for without a device. No torch."""

from __future__ import annotations

SHARED_MEMORY_BYTES = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}
"""Largest dynamic shared memory of a block by compute capability: CUDA C++ Programming Guide 13.0, table "Technical
Specifications per Compute Capability", less the 1 KiB that the system reserves."""


def architecture(target: str) -> int:
    """Give 90 for ``cuda:90``.

    Raises:
        ValueError: It is no such thing, or no architecture this file knows.
    """
    backend, _, arch = target.partition(":")
    if backend != "cuda" or not arch.isdigit() or int(arch) not in SHARED_MEMORY_BYTES:
        known = ", ".join(f"cuda:{a}" for a in sorted(SHARED_MEMORY_BYTES))
        raise ValueError(f"unknown target {target!r}; known are {known}")
    return int(arch)
