"""Pointwise operators that need more than a line of the table, and views."""

from __future__ import annotations

from collections.abc import Callable

from adaexplore.codegen.lowering.context import FLOATS, HALVES, Context, Unsupported, operand
from adaexplore.codegen.operators import FLOAT_ONLY, POINTWISE
from adaexplore.codegen.values import Count, Input, Operand, View
from adaexplore.model.task import Ref


def lower_table(ctx: Context, label: str) -> None:
    """Lower ``table``."""
    arity = POINTWISE[label].count("{")
    wanted = max(int(POINTWISE[label].split("{")[i + 1][0]) for i in range(arity)) + 1
    operands = [operand(a) for a in ctx.op.args[:wanted]]
    if label == "bitwise_not" and ctx.op.dtype != "bool":
        raise Unsupported("of integers")
    alpha = ctx.op.kwargs.get("alpha", 1)
    if label in ("add", "sub") and alpha != 1:
        operands[1] = ctx.pointwise("mul", operands[1], operand(alpha), suffix="_scaled")
    if label == "div" and ctx.op.kwargs.get("rounding_mode") is not None:
        raise Unsupported(f"with rounding_mode={ctx.op.kwargs['rounding_mode']!r}")
    if label == "div" and all(isinstance(o, (int, float)) or _is_integer(ctx, o) for o in operands):
        ctx.pointwise("{0}.to(tl.float32) / {1}", *operands)
        return
    if label in FLOAT_ONLY:
        operands = [_converted(ctx, o, "float32") if _is_integer(ctx, o) else o for o in operands]
    if label in ("add", "sub", "mul") and ctx.op.dtype not in FLOATS:
        if ctx.op.dtype == "bool":
            label = {"add": "bitwise_or", "mul": "bitwise_and"}[label]
        else:
            operands = [_converted(ctx, o, ctx.op.dtype) if _is_bool(ctx, o) else o for o in operands]
    ctx.pointwise(label, *operands)


def _converted(ctx: Context, operand: Operand, dtype: str) -> Operand:
    assert isinstance(operand, Ref)
    shape = ctx.values[operand.name].shape
    return ctx.pointwise(f"{{0}}.to(tl.{dtype})", operand, suffix=f"_{operand.name}", shape=shape, dtype=dtype)


def _is_bool(ctx: Context, operand: Operand) -> bool:
    return isinstance(operand, Ref) and ctx.values[operand.name].dtype == "bool"


def _is_integer(ctx: Context, operand: Operand) -> bool:
    return isinstance(operand, Ref) and ctx.values[operand.name].dtype not in FLOATS


def lower_pow(ctx: Context) -> None:
    """Lower ``pow``."""
    base, exponent = (operand(a) for a in ctx.op.args[:2])
    templates = {
        1: "{0} + 0.0", 2: "{0} * {0}", 3: "{0} * {0} * {0}", 4: "({0} * {0}) * ({0} * {0})",
        0.5: "tl.sqrt({0})", -0.5: "tl.rsqrt({0})", -1: "1.0 / {0}", -2: "1.0 / ({0} * {0})",
    }  # fmt: skip
    if isinstance(exponent, (Ref, str, Count)) or exponent not in templates:
        raise Unsupported(f"with exponent {exponent}: only {', '.join(map(str, sorted(templates)))} have a kernel")
    assert exponent is not None
    ctx.pointwise(templates[exponent], base)


def lower_clamp(ctx: Context) -> None:
    """Lower ``clamp``."""
    x, low, high = (operand(ctx.argument(i, n)) for i, n in enumerate(("self", "min", "max")))
    if low is not None:
        x = ctx.pointwise("tl.where({0} < {1}, {1}, {0})", x, low, suffix="_above" if high is not None else "")
    if high is not None:
        ctx.pointwise("tl.where({0} > {1}, {1}, {0})", x, high)


def lower_gelu(ctx: Context) -> None:
    """Lower ``gelu``."""
    if ctx.op.kwargs.get("approximate", "none") == "tanh":
        x = ctx.op.args[0]
        assert isinstance(x, Ref)
        inner = ctx.pointwise("0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})", x, suffix="_inner")
        ctx.pointwise("0.5 * {0} * (1.0 + @tanh({1}))", x, inner)
    else:
        ctx.pointwise("0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))", operand(ctx.op.args[0]))


def lower_leaky_relu(ctx: Context) -> None:
    """Lower ``leaky_relu``."""
    slope = operand(ctx.argument(1, "negative_slope", 0.01))
    ctx.pointwise("tl.where({0} > 0, {0}, {0} * {1})", operand(ctx.op.args[0]), slope)


def lower_hardtanh(ctx: Context) -> None:
    """Lower ``hardtanh``."""
    low, high = operand(ctx.argument(1, "min_val", -1.0)), operand(ctx.argument(2, "max_val", 1.0))
    below = "tl.where({0} < {1}, {1}, tl.where({0} > {2}, {2}, {0}))"
    ctx.pointwise(below, operand(ctx.op.args[0]), low, high)


def lower_rsub(ctx: Context) -> None:
    """Lower ``rsub``."""
    if ctx.argument(2, "alpha", 1) != 1:
        raise Unsupported("with alpha")
    ctx.pointwise("{1} - {0}", operand(ctx.op.args[0]), operand(ctx.op.args[1]))


def lower_copy(ctx: Context) -> None:
    """Lower ``copy``."""
    x = ctx.op.args[0]
    assert isinstance(x, Ref)
    source, target = ctx.values[x.name].dtype, ctx.op.dtype
    if target == "bool":
        ctx.pointwise("{0} != 0", x)
    elif target in HALVES and target not in _input_dtypes(ctx):
        ctx.pointwise(f"{{0}}.to(tl.{target}).to(tl.float32)", x)  # asked for, whatever comes in
    elif target in (*HALVES, "float32") and source in (*HALVES, "float32"):
        ctx.pointwise("{0}", x)  # halves are computed in fp32: no rounding in between
    else:
        ctx.pointwise(f"{{0}}.to(tl.{'float32' if target in HALVES else target})", x)


def _input_dtypes(ctx: Context) -> set[str]:
    return {v.dtype for v in ctx.values.values() if isinstance(v, Input)}


def lower_full(ctx: Context) -> None:
    """Lower ``full``, ``full_like`` and ``scalar_tensor``: one value, repeated."""
    position = 0 if ctx.op.target.startswith("aten.scalar_tensor") else 1
    value = operand(ctx.op.args[position])
    if ctx.op.shape == ():
        ctx.pointwise("{0}", value)
    else:
        ctx.pointwise("{0}", ctx.pointwise("{0}", value, suffix="_value", shape=()))


def lower_view(ctx: Context) -> None:
    """Lower ``view``."""
    x = ctx.op.args[0]
    assert isinstance(x, Ref)
    if ctx.op.shape == ctx.values[x.name].shape:
        ctx.pointwise("{0}", x)
    else:
        ctx.emit(View(ctx.op.name, ctx.op.shape, ctx.op.dtype, ctx.op.line, "view", x.name))


def lower_expand(ctx: Context) -> None:
    """Lower ``expand``: whoever reads its result reads the operand, repeated."""
    if ctx.is_output and ctx.op.shape != ctx.shape_of(ctx.op.args[0]):
        raise Unsupported("as an output: its elements share memory")
    ctx.pointwise("{0}", operand(ctx.op.args[0]))


def lower_template(template: str) -> Callable[[Context], None]:
    """Give the lowering of an operator that is ``template`` of its first two arguments."""

    def lower(ctx: Context) -> None:
        ctx.pointwise(template, *(operand(a) for a in ctx.op.args[:2]))

    return lower
