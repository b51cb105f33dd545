"""One operator being lowered, and the graph that it goes into."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from adaexplore.codegen.operators import HELPERS, POINTWISE
from adaexplore.codegen.values import Operand, Pointwise, Primitive, operands_of
from adaexplore.model.task import Argument, Dim, Operator, Ref

MACHINE_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""``torch.finfo(dtype).eps``: what rms_norm adds where no epsilon is given."""
FLOATS = frozenset(MACHINE_EPSILON)
HALVES = ("float16", "bfloat16")
"""Stored in 16 bits, computed in float32."""


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
    is_output: bool = False
    """Whether forward returns the operator's result."""

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
        dtype = dtype or self.op.dtype
        template = _for_dtype(POINTWISE.get(label, label), dtype)
        return self.emit(
            Pointwise(
                self.op.name + suffix,
                self.op.shape if shape is None else shape,
                dtype,
                self.op.line,
                suffix.strip("_") or self.op.target.split(".")[1].strip("_"),
                template,
                operands,
            )
        )


def _for_dtype(template: str, dtype: str) -> str:
    """Give the template for results of ``dtype``: whole literals for integers, exact helpers for float64."""
    if dtype == "float64":
        return re.sub(r"@(\w+)", lambda m: f"@{m[1]}_double" if f"{m[1]}_double" in HELPERS else m[0], template)
    if dtype not in FLOATS and dtype != "bool":
        return re.sub(r"(\d)\.0\b", r"\1", template)
    return template


def operand(argument: Argument) -> Operand:
    """Give an argument as an operand.

    Raises:
        Unsupported: It is a list.
    """
    if isinstance(argument, tuple):
        raise Unsupported("it takes a list here")
    if isinstance(argument, str):
        raise Unsupported(f"a number made of the inputs' sizes ({argument}) enters the computation")
    return argument
