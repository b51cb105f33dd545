"""The process-wide precision flags, and the error limits that a policy sets (DESIGN section 4)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

STRICT_FACTOR = 2.0
"""How many times eager's error a candidate may have where TF32 is off."""
TF32_FACTOR = 4.0
"""The same where TF32 is on."""
FLOORS: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (2e-15, 2e-14),
    torch.float32: (1e-6, 1e-5),
    torch.float16: (5e-4, 5e-3),
    torch.bfloat16: (4e-3, 4e-2),
}
"""By output dtype: the relative error e and the largest error m that always pass. About 8 and 84 roundings for fp32
(DESIGN section 4), 8 and 80 for fp64, one and ten for the half types, whose roundings dominate everything else."""


def tf32_is_allowed() -> bool:
    """Tell whether fp32 products may use TF32 in this process."""
    return torch.get_float32_matmul_precision() != "highest"


@contextlib.contextmanager
def policy_flags(policy: str) -> Iterator[None]:
    """Set the flags that ``policy`` wants (``user`` leaves the program's own), and restore them."""
    if policy == "user":
        yield
        return
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    allowed = policy == "tf32"
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn


def error_factor(policy: str) -> float:
    """Give k: how many times eager's error a candidate may have."""
    allowed = tf32_is_allowed() if policy == "user" else policy == "tf32"
    return TF32_FACTOR if allowed else STRICT_FACTOR
