"""The primitives that kernels are made of."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.model.task import Dim, GraphInput, Literal, Ref


@dataclass(frozen=True, slots=True)
class Count:
    """An operand that stands for the number of reduced elements, less ``minus``; zero at least."""

    dims: tuple[Dim, ...]
    """The reduced dimensions."""
    minus: int = 0


Operand = Ref | Literal | Count


@dataclass(frozen=True, slots=True)
class Value:
    """One result. ``line`` is the line of the user's file that it comes from."""

    name: str
    shape: tuple[Dim, ...]
    dtype: str
    line: int | None
    label: str
    """The operator, for names and comments: ``mul``, ``rsqrt``."""


@dataclass(frozen=True, slots=True)
class Input(Value):
    """A tensor that enters the graph."""

    source: GraphInput


@dataclass(frozen=True, slots=True)
class Pointwise(Value):
    """An expression of its operands, element by element, with broadcasting."""

    template: str
    """Triton, with ``{0}``, ``{1}`` … for the operands."""
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Reduce(Value):
    """A reduction over the last ``n_dims`` dimensions."""

    kind: str
    """``sum``, ``mean``, ``max`` or ``min``."""
    operand: str
    n_dims: int
    keepdim: bool


@dataclass(frozen=True, slots=True)
class Matmul(Value):
    """``left @ right`` over the last dimension of ``left``; ``right`` is a matrix."""

    left: str
    right: str
    right_is_transposed: bool
    """``right`` is stored (N, K), as ``nn.Linear`` does."""
    bias: str | None
    """Added to each row, in a library call only; otherwise the lowering adds it."""


@dataclass(frozen=True, slots=True)
class View(Value):
    """The same elements in the same order with another shape."""

    operand: str


Primitive = Input | Pointwise | Reduce | Matmul | View


def operands_of(value: Primitive) -> tuple[str, ...]:
    """Give the names of the values that ``value`` reads."""
    if isinstance(value, Pointwise):
        return tuple(o.name for o in value.operands if isinstance(o, Ref))
    if isinstance(value, Matmul):
        return (value.left, value.right) + ((value.bias,) if value.bias else ())
    if isinstance(value, (Reduce, View)):
        return (value.operand,)
    return ()
