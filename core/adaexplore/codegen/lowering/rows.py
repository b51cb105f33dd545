"""Reductions over the last dimensions, and the norms made of them."""

from __future__ import annotations

from collections.abc import Callable

from adaexplore.codegen.lowering.context import FLOATS, MACHINE_EPSILON, Context, Unsupported, operand
from adaexplore.codegen.values import Count, Reduce
from adaexplore.model.task import Argument, Ref


def _last_dims(ctx: Context, dims: Argument) -> int:
    """Give how many of the last dimensions ``dims`` names; refuse any others."""
    rank = len(ctx.shape_of(ctx.op.args[0]))
    if isinstance(dims, int):
        dims = (dims,)
    if dims in (None, ()):
        return rank
    assert isinstance(dims, tuple)
    named = sorted(int(d) % rank for d in dims if isinstance(d, int))
    if named != list(range(rank - len(named), rank)):
        raise Unsupported(f"over dimensions {list(dims)}: only the last ones have a kernel")
    return len(named)


def _reduce(  # noqa: PLR0913 - a Reduce's own fields
    ctx: Context, kind: str, operand: Ref, n_dims: int, *, keepdim: bool, suffix: str = ""
) -> Ref:
    outer = ctx.values[operand.name].shape[: len(ctx.values[operand.name].shape) - n_dims]
    shape = outer + (1,) * n_dims if keepdim else outer
    dtype = ctx.values[operand.name].dtype if suffix else ctx.op.dtype
    label = suffix.strip("_") or kind
    return ctx.emit(Reduce(ctx.op.name + suffix, shape, dtype, ctx.op.line, label, kind, operand.name, n_dims, keepdim))


def lower_reduction(kind: str) -> Callable[[Context], None]:
    """Lower ``reduction``."""

    def lower(ctx: Context) -> None:
        x = ctx.op.args[0]
        assert isinstance(x, Ref)
        integers = ctx.values[x.name].dtype not in FLOATS
        if integers:
            raise Unsupported("of integers")
        n_dims = _last_dims(ctx, ctx.argument(1, "dim"))
        if n_dims == 0:
            raise Unsupported("of a scalar")
        _reduce(ctx, kind, x, n_dims, keepdim=bool(ctx.argument(2, "keepdim", False)))

    return lower


def _centred(ctx: Context, x: Ref, n_dims: int) -> tuple[Ref, Ref]:
    """Give x - mean(x) and the sum of its squares."""
    shape, dtype = ctx.values[x.name].shape, ctx.values[x.name].dtype
    mean = _reduce(ctx, "mean", x, n_dims, keepdim=True, suffix="_mean")
    centred = ctx.pointwise("sub", x, mean, suffix="_centred", shape=shape, dtype=dtype)
    square = ctx.pointwise("{0} * {0}", centred, suffix="_square", shape=shape, dtype=dtype)
    return centred, square


def lower_var(ctx: Context) -> None:
    """Lower ``var``."""
    x = ctx.op.args[0]
    assert isinstance(x, Ref)
    n_dims = _last_dims(ctx, ctx.argument(1, "dim"))
    if n_dims == 0:
        raise Unsupported("of a scalar")
    correction = ctx.op.kwargs.get("correction", 1)
    correction = 1 if correction is None else correction
    if not isinstance(correction, (int, float)) or int(correction) != correction:
        raise Unsupported(f"with correction {correction}")
    _, square = _centred(ctx, x, n_dims)
    total = _reduce(ctx, "sum", square, n_dims, keepdim=bool(ctx.op.kwargs.get("keepdim", False)), suffix="_total")
    ctx.pointwise("{0} / {1}", total, Count(ctx.shape_of(x)[-n_dims:], int(correction)))


def _affine(ctx: Context, normal: Ref, weight: Argument, bias: Argument) -> None:
    if weight is not None:
        normal = ctx.pointwise("mul", normal, operand(weight), suffix="" if bias is None else "_scaled")
    if bias is not None:
        ctx.pointwise("add", normal, operand(bias))


def lower_layer_norm(ctx: Context) -> None:
    """Lower ``layer_norm``."""
    x, dims = ctx.op.args[0], ctx.op.args[1]
    assert isinstance(x, Ref)
    assert isinstance(dims, tuple)
    weight, bias = ctx.argument(2, "weight"), ctx.argument(3, "bias")
    eps = operand(ctx.argument(4, "eps", 1e-5))
    centred, square = _centred(ctx, x, len(dims))
    variance = _reduce(ctx, "mean", square, len(dims), keepdim=True, suffix="_variance")
    plain = weight is None and bias is None
    normal = ctx.pointwise(
        "{0} * tl.rsqrt({1} + {2})", centred, variance, eps, suffix="" if plain else "_normal", shape=ctx.op.shape
    )
    _affine(ctx, normal, weight, bias)


def lower_rms_norm(ctx: Context) -> None:
    """Lower ``rms_norm``."""
    x, dims = ctx.op.args[0], ctx.op.args[1]
    assert isinstance(x, Ref)
    assert isinstance(dims, tuple)
    weight = ctx.argument(2, "weight")
    eps = ctx.argument(3, "eps")
    added = MACHINE_EPSILON[ctx.values[x.name].dtype] if eps is None else operand(eps)
    square = ctx.pointwise("{0} * {0}", x, suffix="_square", shape=ctx.op.shape)
    mean = _reduce(ctx, "mean", square, len(dims), keepdim=True, suffix="_mean_square")
    normal = ctx.pointwise(
        "{0} * tl.rsqrt({1} + {2})", x, mean, added, suffix="" if weight is None else "_normal", shape=ctx.op.shape
    )
    _affine(ctx, normal, weight, None)
