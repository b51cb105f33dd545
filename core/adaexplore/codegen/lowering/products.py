"""Products with a matrix."""

from __future__ import annotations

from adaexplore.codegen.lowering.context import Context, Unsupported, operand
from adaexplore.codegen.values import Matmul
from adaexplore.model.task import Argument, Ref


def lower_matmul(ctx: Context, left: Argument, right: Argument, bias: Argument, *, transposed: bool) -> None:
    """Lower ``matmul``."""
    assert isinstance(left, Ref)
    assert isinstance(right, Ref)
    if len(ctx.shape_of(right)) != 2 or len(ctx.shape_of(left)) < 2:
        raise Unsupported("of anything but (…, K) by a matrix")
    if ctx.op.dtype not in ("float32", "float16", "bfloat16"):
        raise Unsupported(f"in {ctx.op.dtype}")
    op = ctx.op
    name = op.name if bias is None else op.name + "_product"
    product = Matmul(name, op.shape, op.dtype, op.line, "product", left.name, right.name, transposed, None)
    ctx.emit(product)
    if bias is not None:
        ctx.pointwise("add", Ref(name), operand(bias))


def lower_addmm(ctx: Context) -> None:
    """Lower ``addmm``."""
    if ctx.op.kwargs.get("beta", 1) != 1 or ctx.op.kwargs.get("alpha", 1) != 1:
        raise Unsupported("with alpha or beta")
    lower_matmul(ctx, ctx.op.args[1], ctx.op.args[2], ctx.op.args[0], transposed=False)
