"""ATen operators → primitives, or a refusal that names the operator and its line.

To add an operator: a line in ``operators.POINTWISE``, or a function in one of these files and its line in ``_SPECIAL``.
"""

from __future__ import annotations

from collections.abc import Callable

from adaexplore.codegen.lowering.context import FLOATS, Context, LoweredGraph, Unsupported
from adaexplore.codegen.lowering.pointwise import (
    lower_clamp,
    lower_copy,
    lower_expand,
    lower_full,
    lower_gelu,
    lower_hardtanh,
    lower_leaky_relu,
    lower_pow,
    lower_rsub,
    lower_table,
    lower_template,
    lower_view,
)
from adaexplore.codegen.lowering.products import lower_addmm, lower_matmul
from adaexplore.codegen.lowering.rows import lower_layer_norm, lower_reduction, lower_rms_norm, lower_var
from adaexplore.codegen.operators import POINTWISE
from adaexplore.codegen.values import Input, operands_of
from adaexplore.errors import UnsupportedOperatorError
from adaexplore.model.task import Graph, Task

_COMPUTABLE = FLOATS | {"int8", "int16", "int32", "int64", "uint8", "bool"}
_RANDOM = ("dropout", "rand", "bernoulli", "normal", "multinomial")

_SPECIAL: dict[str, Callable[[Context], None]] = {
    "_to_copy": lower_copy,
    "addmm": lower_addmm,
    "alias": lower_view,
    "amax": lower_reduction("max"),
    "amin": lower_reduction("min"),
    "clamp": lower_clamp,
    "clamp_max": lower_template("tl.where({0} > {1}, {1}, {0})"),
    "clamp_min": lower_template("tl.where({0} < {1}, {1}, {0})"),
    "clone": lower_view,
    "contiguous": lower_view,
    "detach": lower_view,
    "expand": lower_expand,
    "full": lower_full,
    "full_like": lower_full,
    "gelu": lower_gelu,
    "hardtanh": lower_hardtanh,
    "layer_norm": lower_layer_norm,
    "leaky_relu": lower_leaky_relu,
    "linear": lambda ctx: lower_matmul(ctx, ctx.op.args[0], ctx.op.args[1], ctx.argument(2, "bias"), transposed=True),
    "matmul": lambda ctx: lower_matmul(ctx, ctx.op.args[0], ctx.op.args[1], None, transposed=False),
    "mean": lower_reduction("mean"),
    "mm": lambda ctx: lower_matmul(ctx, ctx.op.args[0], ctx.op.args[1], None, transposed=False),
    "pow": lower_pow,
    "reshape": lower_view,
    "rms_norm": lower_rms_norm,
    "rsub": lower_rsub,
    "scalar_tensor": lower_full,
    "squeeze": lower_view,
    "sum": lower_reduction("sum"),
    "unsqueeze": lower_view,
    "var": lower_var,
    "view": lower_view,
    "_unsafe_view": lower_view,
}


def _lower_operator(ctx: Context) -> None:
    namespace, _, rest = ctx.op.target.partition(".")
    label = rest.split(".")[0]
    if ctx.op.dtype not in _COMPUTABLE:
        raise Unsupported(f"in {ctx.op.dtype}")
    if namespace != "aten":
        raise Unsupported("it is not one of PyTorch's own operators")
    if any(word in label for word in _RANDOM):
        raise Unsupported("it draws random numbers; use mode=eval in the # adaexplore: comment if that fits")
    if label in _SPECIAL:
        _SPECIAL[label](ctx)
    elif label in POINTWISE:
        lower_table(ctx, label)
    else:
        raise Unsupported("no kernel family covers it yet")


def lower(graph: Graph, path: str) -> LoweredGraph:
    """Turn ``graph`` into primitives.

    Args:
        graph: As captured.
        path: The user's file, for messages.

    Raises:
        UnsupportedOperatorError: With the first operator that no family covers, and its line.
    """
    lowered = LoweredGraph(outputs=graph.outputs, output_structure=graph.output_structure)
    for entry in graph.inputs:
        lowered.values[entry.name] = Input(entry.name, entry.shape, entry.dtype, None, entry.source, entry)
    for op in graph.operators:
        try:
            _lower_operator(Context(op, lowered.values, op.name in graph.outputs))
        except Unsupported as reason:
            raise UnsupportedOperatorError(
                path=path, line=op.line or "?", operator=op.target, reason=str(reason),
                hint="Optimize a smaller module that leaves this operator out.",
            ) from None  # fmt: skip
        made = lowered.values[op.name]
        if made.shape != op.shape:
            raise AssertionError(f"{op.target} lowered to shape {made.shape}, captured as {op.shape}")
    _drop_dead(lowered)
    return lowered


def _drop_dead(lowered: LoweredGraph) -> None:
    alive: set[str] = set()
    pending = list(lowered.outputs)
    while pending:
        name = pending.pop()
        if name not in alive:
            alive.add(name)
            pending.extend(operands_of(lowered.values[name]))
    lowered.values = {n: v for n, v in lowered.values.items() if n in alive or isinstance(v, Input)}


def lower_task(task: Task) -> LoweredGraph:
    """Lower a task's graph."""
    return lower(task.graph, task.path)
