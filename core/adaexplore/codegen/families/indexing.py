"""Where a row of a tensor lies that is repeated along some of the outer dimensions."""

from __future__ import annotations

from adaexplore.codegen.kernel import KernelWriter
from adaexplore.codegen.partition import Space
from adaexplore.codegen.values import Input, Primitive
from adaexplore.model.task import InputKind


def outer_index(writer: KernelWriter, value: Primitive, space: Space, row: str) -> str:
    """Give the row of ``value``, contiguous and aligned at its last dimension, that belongs to ``row`` of the space.

    Rows of the space are numbered through all outer dimensions, the last one fastest.
    """
    outer = space.outer
    padded = (1,) * (len(space.full) - len(value.shape)) + value.shape
    terms: list[str] = []
    own: list[str] = []
    after: list[str] = []
    for position in range(len(outer) - 1, -1, -1):
        size = writer.size(f"outer_size_{position}", [outer[position]]) if position else ""
        if padded[position] != 1:
            index = row if not after else f"{row} // {_product(after)}"
            if position:
                index = f"{index} % {size}"
            terms.insert(0, index if not own else f"{index} * {_product(own)}")
            own.append(size)
        after.append(size)
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


def may_have_padded_rows(value: Primitive) -> bool:
    """Tell whether the guard admits gaps between its rows: it does for matrices that are passed to forward."""
    return isinstance(value, Input) and value.source.kind is InputKind.ARGUMENT and len(value.shape) == 2


def _product(factors: list[str]) -> str:
    return factors[0] if len(factors) == 1 else f"({' * '.join(reversed(factors))})"
