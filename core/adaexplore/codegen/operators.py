"""ATen's pointwise operators as Triton expressions that keep eager's NaN, Inf and signed zeros.

Float operands arrive as fp32 (fp64 for float64). ``tl.maximum`` and friends drop NaN, which eager keeps, so such
operators are written with ``tl.where`` or ask for propagation.
"""

from __future__ import annotations

from collections.abc import Mapping

_NAN = "propagate_nan=tl.PropagateNan.ALL"

POINTWISE: Mapping[str, str] = {
    "abs": "tl.abs({0})",
    "add": "{0} + {1}",
    "bitwise_and": "{0} & {1}",
    "bitwise_not": "{0} == 0",  # of booleans; integers are refused in the lowering
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "ceil": "tl.ceil({0})",
    "cos": "tl.cos({0})",
    "div": "{0} / {1}",
    "eq": "{0} == {1}",
    "erf": "tl.erf({0})",
    "exp": "tl.exp({0})",
    "exp2": "tl.exp2({0})",
    "expm1": "@expm1({0})",
    "floor": "tl.floor({0})",
    "ge": "{0} >= {1}",
    "gt": "{0} > {1}",
    "isinf": 'tl.abs({0}) == float("inf")',
    "isnan": "{0} != {0}",
    "le": "{0} <= {1}",
    "log": "tl.log({0})",
    "log1p": "@log1p({0})",
    "log2": "tl.log2({0})",
    "logical_and": "({0} != 0) & ({1} != 0)",
    "logical_not": "{0} == 0",
    "logical_or": "({0} != 0) | ({1} != 0)",
    "lt": "{0} < {1}",
    "maximum": f"tl.maximum({{0}}, {{1}}, {_NAN})",
    "minimum": f"tl.minimum({{0}}, {{1}}, {_NAN})",
    "mul": "{0} * {1}",
    "ne": "{0} != {1}",
    "neg": "-{0}",
    "reciprocal": "1.0 / {0}",
    "relu": "tl.where({0} < 0, 0.0, {0})",
    "rsqrt": "tl.rsqrt({0})",
    "sigmoid": "tl.sigmoid({0})",
    "sign": "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, 0.0))",
    "silu": "{0} * tl.sigmoid({0})",
    "sin": "tl.sin({0})",
    "sqrt": "tl.sqrt({0})",
    "sub": "{0} - {1}",
    "tanh": "@tanh({0})",
    "where": "tl.where({0}, {1}, {2})",
}
"""By operator name, without overload. ``@name`` calls a helper of ``HELPERS``."""

ZERO_KEEPING = frozenset({"abs", "neg", "sqrt", "relu", "silu", "sign", "sin", "tanh", "erf", "expm1", "log1p"})
"""Operators that map zero to zero: padding that is zero stays zero."""

FLOAT_ONLY = frozenset({
    "cos", "erf", "exp", "exp2", "expm1", "log", "log1p", "log2", "rsqrt", "sigmoid", "sin", "sqrt", "tanh",
})  # fmt: skip
"""Operators that Triton has for floats alone; eager converts integers first."""

HELPERS: Mapping[str, tuple[str, ...]] = {
    "tanh": (
        '"""tanh that is exact for small x too; tl has none, and 2 * sigmoid(2 * x) - 1 cancels."""',
        "square = x * x",
        "series = x * (1 + square * (-1 / 3 + square * (2 / 15 + square * (-17 / 315 + square * (62 / 2835)))))",
        "decay = tl.exp(-2 * tl.abs(x))",
        "ratio = (1 - decay) / (1 + decay)",
        "return tl.where(tl.abs(x) < 0.25, series, tl.where(x < 0, -ratio, ratio))",
    ),
    "tanh_double": (
        '"""tanh in float64, by an exact exp(x) - 1 (Kahan\'s correction)."""',
        "doubled = -2 * tl.abs(x)",
        "power = tl.exp(doubled)",
        "exact = (power - 1) * (doubled / tl.log(power))",
        "less = tl.where(power == 1, doubled, tl.where(power - 1 == -1, power - 1, exact))",
        "return tl.where(x < 0, less / (2 + less), -less / (2 + less))",
    ),
    "expm1_double": (
        '"""exp(x) - 1 in float64 that is exact for small x too (Kahan\'s correction)."""',
        "power = tl.exp(x)",
        "exact = (power - 1) * (x / tl.log(power))",
        'plain = (power - 1 == -1) | (power == float("inf"))',
        "return tl.where(power == 1, x, tl.where(plain, power - 1, exact))",
    ),
    "log1p": (
        '"""log(1 + x) that is exact for small x too (Kahan\'s correction)."""',
        "shifted = 1 + x",
        "exact = tl.log(shifted) * (x / (shifted - 1))",
        'return tl.where(shifted == 1, x, tl.where(shifted == float("inf"), shifted, exact))',
    ),
    "expm1": (
        '"""exp(x) - 1 that is exact for small x too."""',
        "series = x * (1 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720))))))",
        "return tl.where(tl.abs(x) < 0.25, series, tl.exp(x) - 1)",
    ),
    "max": ("return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)",),
    "min": ("return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)",),
}
"""Bodies of ``@triton.jit`` helpers; ``max`` and ``min`` combine two values in a reduction that keeps NaN."""

HELPER_PARAMETERS: Mapping[str, str] = {name: "a, b" if name in ("max", "min") else "x" for name in HELPERS}
