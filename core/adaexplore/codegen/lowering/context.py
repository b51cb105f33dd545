"""One operator being lowered, and the graph that it goes into."""

from __future__ import annotations

from dataclasses import dataclass, field

from adaexplore.codegen.operators import POINTWISE
from adaexplore.codegen.values import Operand, Pointwise, Primitive, operands_of
from adaexplore.model.task import Argument, Dim, Operator, Ref

MACHINE_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""``torch.finfo(dtype).eps``: what rms_norm adds where no epsilon is given."""
FLOATS = frozenset(MACHINE_EPSILON)


class Unsupported(Exception):
    """Why this operator cannot be lowered."""


@dataclass(slots=True)
class LoweredGraph:
    """Primitives in execution order."""

    values: dict[str, Primitive] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    output_structure: str = "tensor"

    def users(self) -> dict[str, list[str]]:
        """Give for each value the values that read it."""
        users: dict[str, list[str]] = {name: [] for name in self.values}
        for value in self.values.values():
            for operand in operands_of(value):
                users[operand].append(value.name)
        return users


@dataclass(slots=True)
class Context:
    """One operator being lowered."""

    op: Operator
    values: dict[str, Primitive]

    def shape_of(self, argument: Argument) -> tuple[Dim, ...]:
        """Give the shape of an argument that is a tensor."""
        assert isinstance(argument, Ref)
        return self.values[argument.name].shape

    def argument(self, position: int, keyword: str, default: Argument = None) -> Argument:
        """Give an argument of the operator by position or keyword."""
        if len(self.op.args) > position:
            return self.op.args[position]
        return self.op.kwargs.get(keyword, default)

    def emit(self, value: Primitive) -> Ref:
        """Add a primitive; gives the reference to it."""
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


def operand(argument: Argument) -> Operand:
    """Give an argument as an operand.

    Raises:
        Unsupported: It is a list.
    """
    if isinstance(argument, tuple):
        raise Unsupported("it takes a list here")
    return argument
