"""ATen operators → primitives, or a refusal that names the operator and its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from adaexplore.codegen.operators import POINTWISE
from adaexplore.codegen.values import Count, Input, Matmul, Operand, Pointwise, Primitive, Reduce, View
from adaexplore.errors import UnsupportedOperatorError
from adaexplore.model.task import Argument, Dim, Graph, Operator, Ref, Task

MACHINE_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""``torch.finfo(dtype).eps``: what rms_norm adds where no epsilon is given."""
_FLOATS = frozenset(MACHINE_EPSILON)
_COMPUTABLE = _FLOATS | {"int8", "int16", "int32", "int64", "uint8", "bool"}
_RANDOM = ("dropout", "rand", "bernoulli", "normal", "multinomial")


class _Unsupported(Exception):
    """Why this operator cannot be lowered."""


@dataclass(slots=True)
class LoweredGraph:
    """Primitives in execution order."""

    values: dict[str, Primitive] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    output_structure: str = "tensor"

    def users(self) -> dict[str, list[str]]:
        """Give for each value the values that read it."""
        from adaexplore.codegen.values import operands_of

        users: dict[str, list[str]] = {name: [] for name in self.values}
        for value in self.values.values():
            for operand in operands_of(value):
                users[operand].append(value.name)
        return users


@dataclass(slots=True)
class _Context:
    """One operator being lowered."""

    op: Operator
    values: dict[str, Primitive]

    def shape_of(self, argument: Argument) -> tuple[Dim, ...]:
        assert isinstance(argument, Ref)
        return self.values[argument.name].shape

    def argument(self, position: int, keyword: str, default: Argument = None) -> Argument:
        if len(self.op.args) > position:
            return self.op.args[position]
        return self.op.kwargs.get(keyword, default)

    def emit(self, value: Primitive) -> Ref:
        self.values[value.name] = value
        return Ref(value.name)

    def pointwise(
        self, label: str, *operands: Operand, suffix: str = "", shape: tuple[Dim, ...] | None = None, dtype: str = ""
    ) -> Ref:
        """Add an intermediate (with ``suffix``) or the operator's result itself."""
        template = POINTWISE.get(label, label)
        return self.emit(
            Pointwise(
                self.op.name + suffix,
                self.op.shape if shape is None else shape,
                dtype or self.op.dtype,
                self.op.line,
                suffix.strip("_") or self.op.target.split(".")[1].strip("_"),
                template,
                operands,
            )
        )


def _operand(argument: Argument) -> Operand:
    if isinstance(argument, tuple):
        raise _Unsupported("it takes a list here")
    return argument


def _lower_table(ctx: _Context, label: str) -> None:
    arity = POINTWISE[label].count("{")
    wanted = max(int(POINTWISE[label].split("{")[i + 1][0]) for i in range(arity)) + 1
    operands = [_operand(a) for a in ctx.op.args[:wanted]]
    if label == "bitwise_not" and ctx.op.dtype != "bool":
        raise _Unsupported("of integers")
    alpha = ctx.op.kwargs.get("alpha", 1)
    if label in ("add", "sub") and alpha != 1:
        operands[1] = ctx.pointwise("mul", operands[1], _operand(alpha), suffix="_scaled")
    if label == "div" and ctx.op.kwargs.get("rounding_mode") is not None:
        raise _Unsupported(f"with rounding_mode={ctx.op.kwargs['rounding_mode']!r}")
    if label == "div" and all(isinstance(o, (int, float)) or _is_integer(ctx, o) for o in operands):
        ctx.pointwise("{0}.to(tl.float32) / {1}", *operands)
        return
    ctx.pointwise(label, *operands)


def _is_integer(ctx: _Context, operand: Operand) -> bool:
    return isinstance(operand, Ref) and ctx.values[operand.name].dtype not in _FLOATS


def _lower_pow(ctx: _Context) -> None:
    base, exponent = (_operand(a) for a in ctx.op.args[:2])
    templates = {
        1: "{0} + 0.0", 2: "{0} * {0}", 3: "{0} * {0} * {0}", 4: "({0} * {0}) * ({0} * {0})",
        0.5: "tl.sqrt({0})", -0.5: "tl.rsqrt({0})", -1: "1.0 / {0}", -2: "1.0 / ({0} * {0})",
    }  # fmt: skip
    if isinstance(exponent, (Ref, str, Count)) or exponent not in templates:
        raise _Unsupported(f"with exponent {exponent}: only {', '.join(map(str, sorted(templates)))} have a kernel")
    assert exponent is not None
    ctx.pointwise(templates[exponent], base)


def _lower_clamp(ctx: _Context) -> None:
    x, low, high = (_operand(ctx.argument(i, n)) for i, n in enumerate(("self", "min", "max")))
    if low is not None:
        x = ctx.pointwise("tl.where({0} < {1}, {1}, {0})", x, low, suffix="_above" if high is not None else "")
    if high is not None:
        ctx.pointwise("tl.where({0} > {1}, {1}, {0})", x, high)


def _lower_gelu(ctx: _Context) -> None:
    if ctx.op.kwargs.get("approximate", "none") == "tanh":
        x = ctx.op.args[0]
        assert isinstance(x, Ref)
        inner = ctx.pointwise("0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})", x, suffix="_inner")
        ctx.pointwise("0.5 * {0} * (1.0 + @tanh({1}))", x, inner)
    else:
        ctx.pointwise("0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))", _operand(ctx.op.args[0]))


def _lower_leaky_relu(ctx: _Context) -> None:
    slope = _operand(ctx.argument(1, "negative_slope", 0.01))
    ctx.pointwise("tl.where({0} > 0, {0}, {0} * {1})", _operand(ctx.op.args[0]), slope)


def _lower_hardtanh(ctx: _Context) -> None:
    low, high = _operand(ctx.argument(1, "min_val", -1.0)), _operand(ctx.argument(2, "max_val", 1.0))
    below = "tl.where({0} < {1}, {1}, tl.where({0} > {2}, {2}, {0}))"
    ctx.pointwise(below, _operand(ctx.op.args[0]), low, high)


def _lower_rsub(ctx: _Context) -> None:
    if ctx.argument(2, "alpha", 1) != 1:
        raise _Unsupported("with alpha")
    ctx.pointwise("{1} - {0}", _operand(ctx.op.args[0]), _operand(ctx.op.args[1]))


def _lower_copy(ctx: _Context) -> None:
    x = ctx.op.args[0]
    assert isinstance(x, Ref)
    source, target = ctx.values[x.name].dtype, ctx.op.dtype
    if target == "bool":
        ctx.pointwise("{0} != 0", x)
    elif target in _FLOATS and source in _FLOATS and target != "float64":
        ctx.pointwise("{0}", x)  # sums and products stay in fp32: no rounding in between
    else:
        ctx.pointwise("{0}.to(tl." + {"bool": "int1"}.get(target, _compute_dtype(target)) + ")", x)


def _compute_dtype(dtype: str) -> str:
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _lower_scalar(ctx: _Context) -> None:
    position = 0 if ctx.op.target.startswith("aten.scalar_tensor") else 1
    value = _operand(ctx.op.args[position])
    if isinstance(value, Ref) or any(d != 1 for d in ctx.op.shape):
        raise _Unsupported("of more than one element")
    ctx.pointwise("{0}", value)


def _lower_view(ctx: _Context) -> None:
    x = ctx.op.args[0]
    assert isinstance(x, Ref)
    if ctx.op.shape == ctx.values[x.name].shape:
        ctx.pointwise("{0}", x)
    else:
        ctx.emit(View(ctx.op.name, ctx.op.shape, ctx.op.dtype, ctx.op.line, "view", x.name))


def _lower_expand(ctx: _Context) -> None:
    if ctx.op.shape != ctx.shape_of(ctx.op.args[0]):
        raise _Unsupported("its result is read as a tensor of its own")
    ctx.pointwise("{0}", _operand(ctx.op.args[0]))


def _last_dims(ctx: _Context, dims: Argument) -> int:
    """Give how many of the last dimensions ``dims`` names; refuse any others."""
    rank = len(ctx.shape_of(ctx.op.args[0]))
    if isinstance(dims, int):
        dims = (dims,)
    if dims in (None, ()):
        return rank
    assert isinstance(dims, tuple)
    named = sorted(int(d) % rank for d in dims if isinstance(d, int))
    if named != list(range(rank - len(named), rank)):
        raise _Unsupported(f"over dimensions {list(dims)}: only the last ones have a kernel")
    return len(named)


def _reduce(ctx: _Context, kind: str, operand: Ref, n_dims: int, keepdim: bool, suffix: str = "") -> Ref:
    outer = ctx.values[operand.name].shape[: len(ctx.values[operand.name].shape) - n_dims]
    shape = outer + (1,) * n_dims if keepdim else outer
    dtype = ctx.values[operand.name].dtype if suffix else ctx.op.dtype
    label = suffix.strip("_") or kind
    return ctx.emit(Reduce(ctx.op.name + suffix, shape, dtype, ctx.op.line, label, kind, operand.name, n_dims, keepdim))


def _lower_reduction(kind: str) -> Callable[[_Context], None]:
    def lower(ctx: _Context) -> None:
        x = ctx.op.args[0]
        assert isinstance(x, Ref)
        integers = ctx.values[x.name].dtype not in _FLOATS
        if integers:
            raise _Unsupported("of integers")
        n_dims = _last_dims(ctx, ctx.argument(1, "dim"))
        if n_dims == 0:
            raise _Unsupported("of a scalar")
        _reduce(ctx, kind, x, n_dims, bool(ctx.argument(2, "keepdim", False)))

    return lower


def _centred(ctx: _Context, x: Ref, n_dims: int) -> tuple[Ref, Ref]:
    """Give x - mean(x) and the sum of its squares."""
    shape, dtype = ctx.values[x.name].shape, ctx.values[x.name].dtype
    mean = _reduce(ctx, "mean", x, n_dims, keepdim=True, suffix="_mean")
    centred = ctx.pointwise("sub", x, mean, suffix="_centred", shape=shape, dtype=dtype)
    square = ctx.pointwise("{0} * {0}", centred, suffix="_square", shape=shape, dtype=dtype)
    return centred, square


def _lower_var(ctx: _Context) -> None:
    x = ctx.op.args[0]
    assert isinstance(x, Ref)
    n_dims = _last_dims(ctx, ctx.argument(1, "dim"))
    correction = ctx.op.kwargs.get("correction", 1)
    correction = 1 if correction is None else correction
    if not isinstance(correction, (int, float)) or int(correction) != correction:
        raise _Unsupported(f"with correction {correction}")
    _, square = _centred(ctx, x, n_dims)
    total = _reduce(ctx, "sum", square, n_dims, bool(ctx.op.kwargs.get("keepdim", False)), suffix="_total")
    ctx.pointwise("{0} / {1}", total, Count(int(correction)))


def _affine(ctx: _Context, normal: Ref, weight: Argument, bias: Argument) -> None:
    if weight is not None:
        normal = ctx.pointwise("mul", normal, _operand(weight), suffix="" if bias is None else "_scaled")
    if bias is not None:
        ctx.pointwise("add", normal, _operand(bias))


def _lower_layer_norm(ctx: _Context) -> None:
    x, dims = ctx.op.args[0], ctx.op.args[1]
    assert isinstance(x, Ref)
    assert isinstance(dims, tuple)
    weight, bias = ctx.argument(2, "weight"), ctx.argument(3, "bias")
    eps = _operand(ctx.argument(4, "eps", 1e-5))
    centred, square = _centred(ctx, x, len(dims))
    variance = _reduce(ctx, "mean", square, len(dims), keepdim=True, suffix="_variance")
    plain = weight is None and bias is None
    normal = ctx.pointwise(
        "{0} * tl.rsqrt({1} + {2})", centred, variance, eps, suffix="" if plain else "_normal", shape=ctx.op.shape
    )
    _affine(ctx, normal, weight, bias)


def _lower_rms_norm(ctx: _Context) -> None:
    x, dims = ctx.op.args[0], ctx.op.args[1]
    assert isinstance(x, Ref)
    assert isinstance(dims, tuple)
    weight = ctx.argument(2, "weight")
    eps = ctx.argument(3, "eps")
    eps = MACHINE_EPSILON[ctx.values[x.name].dtype] if eps is None else _operand(eps)
    square = ctx.pointwise("{0} * {0}", x, suffix="_square", shape=ctx.op.shape)
    mean = _reduce(ctx, "mean", square, len(dims), keepdim=True, suffix="_mean_square")
    normal = ctx.pointwise(
        "{0} * tl.rsqrt({1} + {2})", x, mean, eps, suffix="" if weight is None else "_normal", shape=ctx.op.shape
    )
    _affine(ctx, normal, weight, None)


def _lower_matmul(ctx: _Context, left: Argument, right: Argument, bias: Argument, *, transposed: bool) -> None:
    assert isinstance(left, Ref)
    assert isinstance(right, Ref)
    if len(ctx.shape_of(right)) != 2 or len(ctx.shape_of(left)) < 2:
        raise _Unsupported("of anything but (…, K) by a matrix")
    if ctx.op.dtype not in ("float32", "float16", "bfloat16"):
        raise _Unsupported(f"in {ctx.op.dtype}")
    op = ctx.op
    name = op.name if bias is None else op.name + "_product"
    product = Matmul(name, op.shape, op.dtype, op.line, "product", left.name, right.name, transposed, None)
    ctx.emit(product)
    if bias is not None:
        ctx.pointwise("add", Ref(name), _operand(bias))


def _lower_addmm(ctx: _Context) -> None:
    if ctx.op.kwargs.get("beta", 1) != 1 or ctx.op.kwargs.get("alpha", 1) != 1:
        raise _Unsupported("with alpha or beta")
    _lower_matmul(ctx, ctx.op.args[1], ctx.op.args[2], ctx.op.args[0], transposed=False)


_SPECIAL: dict[str, Callable[[_Context], None]] = {
    "_to_copy": _lower_copy,
    "addmm": _lower_addmm,
    "alias": _lower_view,
    "amax": _lower_reduction("max"),
    "amin": _lower_reduction("min"),
    "clamp": _lower_clamp,
    "clamp_max": lambda ctx: ctx.pointwise("tl.where({0} > {1}, {1}, {0})", *map(_operand, ctx.op.args[:2])) and None,
    "clamp_min": lambda ctx: ctx.pointwise("tl.where({0} < {1}, {1}, {0})", *map(_operand, ctx.op.args[:2])) and None,
    "clone": _lower_view,
    "contiguous": _lower_view,
    "detach": _lower_view,
    "expand": _lower_expand,
    "full": _lower_scalar,
    "gelu": _lower_gelu,
    "hardtanh": _lower_hardtanh,
    "layer_norm": _lower_layer_norm,
    "leaky_relu": _lower_leaky_relu,
    "linear": lambda ctx: _lower_matmul(ctx, ctx.op.args[0], ctx.op.args[1], ctx.argument(2, "bias"), transposed=True),
    "matmul": lambda ctx: _lower_matmul(ctx, ctx.op.args[0], ctx.op.args[1], None, transposed=False),
    "mean": _lower_reduction("mean"),
    "mm": lambda ctx: _lower_matmul(ctx, ctx.op.args[0], ctx.op.args[1], None, transposed=False),
    "pow": _lower_pow,
    "reshape": _lower_view,
    "rms_norm": _lower_rms_norm,
    "rsub": _lower_rsub,
    "scalar_tensor": _lower_scalar,
    "squeeze": _lower_view,
    "sum": _lower_reduction("sum"),
    "unsqueeze": _lower_view,
    "var": _lower_var,
    "view": _lower_view,
    "_unsafe_view": _lower_view,
}


def _lower_operator(ctx: _Context) -> None:
    namespace, _, rest = ctx.op.target.partition(".")
    label = rest.split(".")[0]
    if ctx.op.dtype not in _COMPUTABLE:
        raise _Unsupported(f"in {ctx.op.dtype}")
    if namespace != "aten":
        raise _Unsupported("it is not one of PyTorch's own operators")
    if any(word in label for word in _RANDOM):
        raise _Unsupported("it draws random numbers; use mode=eval in the # adaexplore: comment if that fits")
    if label in _SPECIAL:
        _SPECIAL[label](ctx)
    elif label in POINTWISE:
        _lower_table(ctx, label)
    else:
        raise _Unsupported("no kernel family covers it yet")


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
            _lower_operator(_Context(op, lowered.values))
        except _Unsupported as reason:
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
    from adaexplore.codegen.values import operands_of

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
