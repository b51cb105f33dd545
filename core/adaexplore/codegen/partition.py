"""Which primitives become one kernel.

Greedy, in execution order: a primitive joins the open group where the group's iteration space admits it, else it opens
the next one. Groups are therefore runs of the execution order, and no cycle can arise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from adaexplore.codegen.lowering.context import LoweredGraph
from adaexplore.codegen.values import Input, Matmul, Pointwise, Primitive, Reduce, View, operands_of
from adaexplore.model.task import Dim, Ref

Shape = tuple[Dim, ...]


class GroupKind(StrEnum):
    """What a group's kernel iterates over."""

    POINTWISE = "pointwise"
    """The elements of one shape."""
    ROWS = "rows"
    """Rows: the outer dimensions; the last ones are reduced within a program."""
    MATMUL = "matmul"
    """Tiles of a product, with a pointwise epilogue."""
    LIBRARY = "library"
    """A product left to PyTorch's library."""
    VIEW = "view"
    """A reshape between kernels: no kernel at all."""


class Form(StrEnum):
    """How a value lies in a group's space."""

    FULL = "full"
    ROW = "row"
    """One value a row; the last dimensions are 1."""
    FLAT_ROW = "flat_row"
    """One value a row; the last dimensions are absent."""
    COLUMN = "column"
    """The same for every row."""
    PARTIAL = "partial"
    """Repeated along some of the outer dimensions."""
    PARTIAL_ROW = "partial_row"
    """One value a row, repeated along some of the outer dimensions."""
    SCALAR = "scalar"


@dataclass(frozen=True, slots=True)
class Space:
    """The iteration space: ``outer + inner``; ``inner`` is empty for pointwise groups."""

    outer: Shape
    inner: Shape

    @property
    def full(self) -> Shape:
        """The whole shape."""
        return self.outer + self.inner


@dataclass(frozen=True, slots=True)
class Group:
    """Primitives that become one kernel (or one library call, or one reshape)."""

    kind: GroupKind
    space: Space
    members: tuple[str, ...]
    forms: dict[str, Form]
    """Of members and of what they read from outside."""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def _padded(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def broadcasts_to(shape: Shape, target: Shape) -> bool:
    """Tell whether ``shape`` can be read as ``target``."""
    if len(shape) > len(target):
        return False
    return all(s in (1, t) for s, t in zip(_padded(shape, len(target)), target, strict=True))


def classify(shape: Shape, space: Space) -> Form | None:
    """Tell how a tensor of ``shape``, aligned at its last dimension, lies in ``space``; None where it does not fit."""
    if shape == space.full and space.inner:
        return Form.FULL
    if all(d == 1 for d in shape):
        return Form.SCALAR
    if not broadcasts_to(shape, space.full):
        return None
    padded = _padded(shape, len(space.full))
    outer, inner = padded[: len(space.outer)], padded[len(space.outer) :]
    repeats_all = all(d == 1 for d in outer)
    if inner == space.inner and space.inner:
        return Form.COLUMN if repeats_all else Form.PARTIAL
    if all(d == 1 for d in inner):
        return Form.ROW if outer == space.outer else Form.PARTIAL_ROW
    return None


_BY_ROW = (Form.ROW, Form.PARTIAL_ROW, Form.SCALAR)


def _join(forms: list[Form]) -> Form:
    """Give the form of what is computed from values of these forms, where its shape does not tell."""
    if all(f is Form.SCALAR for f in forms):
        return Form.SCALAR
    if all(f in (Form.FLAT_ROW, Form.SCALAR) for f in forms):
        return Form.FLAT_ROW
    if all(f in _BY_ROW for f in forms):
        return Form.ROW
    if all(f in (Form.COLUMN, Form.SCALAR) for f in forms):
        return Form.COLUMN
    return Form.FULL


class _Open:
    """The group being built."""

    def __init__(self, lowered: LoweredGraph, kind: GroupKind, space: Space) -> None:
        self.lowered = lowered
        self.kind = kind
        self.space = space
        self.members: list[str] = []
        self.forms: dict[str, Form] = {}

    def _form_in_rows(self, value: Primitive) -> tuple[Form, dict[str, Form]] | None:
        """Give the form of ``value`` and of what it reads from outside, or None where it does not fit."""
        if isinstance(value, Reduce):
            operand = self.forms.get(value.operand) if value.operand in self.members else Form.FULL
            shape = self.lowered.values[value.operand].shape
            fits = shape == self.space.full and value.n_dims == len(self.space.inner)
            if self.kind is not GroupKind.ROWS or operand is not Form.FULL or not fits:
                return None
            return (Form.ROW if value.keepdim else Form.FLAT_ROW), {value.operand: Form.FULL}
        if isinstance(value, View):
            return self._form_of_view(value)
        if not isinstance(value, Pointwise):
            return None
        names = [o.name for o in value.operands if isinstance(o, Ref)]
        if not names:
            return (Form.SCALAR, {}) if all(d == 1 for d in value.shape) else None
        found = self._aligned(names)
        own = classify(value.shape, self.space) if found is not None else None
        if found is None:
            found = self._flat(names, value)
        if found is None:
            return None
        # A scalar may be the one row there is; a value of fewer dimensions than the space's one is a flat row.
        return (own if own not in (None, Form.SCALAR) else _join([found[n] for n in names])), found

    def _form_of_view(self, value: View) -> tuple[Form, dict[str, Form]] | None:
        form = self.forms.get(value.operand)
        if value.operand not in self.members:
            return None
        if form is Form.ROW and value.shape == self.space.outer:
            return Form.FLAT_ROW, {}
        if form is Form.FLAT_ROW and value.shape == self.space.outer + (1,) * len(self.space.inner):
            return Form.ROW, {}
        return None

    def _aligned(self, names: list[str]) -> dict[str, Form] | None:
        found: dict[str, Form] = {}
        for name in names:
            form = self.forms[name] if name in self.members else classify(self.lowered.values[name].shape, self.space)
            if form is None or (form is Form.FLAT_ROW and self.space.outer):
                return None
            found[name] = form
        return found

    def _flat(self, names: list[str], value: Primitive) -> dict[str, Form] | None:
        if self.kind is not GroupKind.ROWS or value.shape != self.space.outer:
            return None
        found: dict[str, Form] = {}
        for name in names:
            shape = self.lowered.values[name].shape
            inside = self.forms[name] if name in self.members else None
            if inside is Form.SCALAR or (inside is None and all(d == 1 for d in shape)):
                found[name] = Form.SCALAR
            elif inside is Form.FLAT_ROW or (inside is None and shape == self.space.outer):
                found[name] = Form.FLAT_ROW
            else:
                return None
        return found

    def _fits_elements(self, value: Primitive) -> dict[str, Form] | None:
        """Pointwise groups: every shape broadcasts to the space's."""
        if not isinstance(value, Pointwise):
            return None
        found: dict[str, Form] = {}
        for name in (*(o.name for o in value.operands if isinstance(o, Ref)),):
            shape = self.lowered.values[name].shape
            if not broadcasts_to(shape, self.space.full):
                return None
            found[name] = Form.SCALAR if all(d == 1 for d in shape) else Form.FULL
        return found

    def add(self, value: Primitive) -> bool:
        """Take ``value`` into the group where its space admits it."""
        if self.kind is GroupKind.POINTWISE:
            return self._add_element(value)
        if self.kind in (GroupKind.ROWS, GroupKind.MATMUL):
            found = self._form_in_rows(value)
            if found is None:
                return False
            self._take(value, found[0], found[1])
            return True
        return False

    def _take(self, value: Primitive, form: Form, read: dict[str, Form]) -> None:
        for name, name_form in read.items():
            self.forms.setdefault(name, name_form)
        self.members.append(value.name)
        self.forms[value.name] = form

    def _add_element(self, value: Primitive) -> bool:
        if isinstance(value, Reduce):
            return self._become_rows(value)
        if not isinstance(value, Pointwise):
            return False
        previous = self.space
        if broadcasts_to(self.space.full, value.shape):
            self.space = Space(value.shape, ())
        elif not broadcasts_to(value.shape, self.space.full):
            return False
        found = self._fits_elements(value)
        if found is None:
            self.space = previous
            return False
        self._take(value, Form.FULL, found)
        return True

    def _become_rows(self, value: Reduce) -> bool:
        shape = self.lowered.values[value.operand].shape
        outer, inner = shape[: len(shape) - value.n_dims], shape[len(shape) - value.n_dims :]
        rows = _Open(self.lowered, GroupKind.ROWS, Space(outer, inner))
        if not all(rows.add(self.lowered.values[m]) for m in self.members) or not rows.add(value):
            return False
        self.kind, self.space, self.members, self.forms = rows.kind, rows.space, rows.members, rows.forms
        return True


def _open_group(lowered: LoweredGraph, value: Primitive) -> _Open:
    if isinstance(value, Matmul):
        group = _Open(lowered, GroupKind.MATMUL, Space(value.shape[:-1], value.shape[-1:]))
        group.members.append(value.name)
        group.forms[value.name] = Form.FULL
        return group
    if isinstance(value, Reduce):
        shape = lowered.values[value.operand].shape
        cut = len(shape) - value.n_dims
        group = _Open(lowered, GroupKind.ROWS, Space(shape[:cut], shape[cut:]))
    elif isinstance(value, View):
        group = _Open(lowered, GroupKind.VIEW, Space(value.shape, ()))
        group.members.append(value.name)
        return group
    else:
        group = _Open(lowered, GroupKind.POINTWISE, Space(value.shape, ()))
    added = group.add(value)
    assert added, value
    return group


def _close(lowered: LoweredGraph, group: _Open, users: dict[str, list[str]]) -> Group:
    members = set(group.members)
    outputs = tuple(m for m in group.members if m in lowered.outputs or any(user not in members for user in users[m]))
    read: list[str] = []
    for member in group.members:
        for operand in operands_of(lowered.values[member]):
            if operand not in members and operand not in read:
                read.append(operand)
    return Group(group.kind, group.space, tuple(group.members), dict(group.forms), tuple(read), outputs)


def _unstorable(lowered: LoweredGraph, group: Group) -> str | None:
    """Give an output that the group's kernel cannot write: a value that is repeated in the space."""
    space = group.space
    storable = {Form.FULL: space.full}
    if group.kind is GroupKind.ROWS:
        storable |= {Form.ROW: space.outer + (1,) * len(space.inner), Form.FLAT_ROW: space.outer}
    if group.kind in (GroupKind.VIEW, GroupKind.LIBRARY):
        return None
    return next((n for n in group.outputs if storable.get(group.forms[n]) != lowered.values[n].shape), None)


def partition(lowered: LoweredGraph) -> tuple[Group, ...]:
    """Cut the graph into groups, in execution order."""
    users = lowered.users()
    alone: set[str] = set()
    while True:
        groups = _partition_once(lowered, users, alone)
        bad = next((name for g in groups if (name := _unstorable(lowered, g)) is not None), None)
        if bad is None:
            return groups
        assert bad not in alone, bad
        alone.add(bad)  # a small value that is needed outside: it gets a kernel of its own


def _partition_once(lowered: LoweredGraph, users: dict[str, list[str]], alone: set[str]) -> tuple[Group, ...]:
    groups: list[Group] = []
    current: _Open | None = None
    for value in lowered.values.values():
        if isinstance(value, Input):
            continue
        if current is not None and value.name not in alone and current.add(value):
            continue
        if current is not None:
            groups.append(_close(lowered, current, users))
        current = _open_group(lowered, value)
        if value.name in alone or current.kind is GroupKind.VIEW:
            groups.append(_close(lowered, current, users))
            current = None
    if current is not None:
        groups.append(_close(lowered, current, users))
    return tuple(groups)


def with_library_product(lowered: LoweredGraph, group: Group) -> tuple[Group, ...]:
    """Leave a matmul group's product (and its bias) to the library; the rest of the group becomes its own kernel."""
    users = lowered.users()
    product = lowered.values[group.members[0]]
    assert isinstance(product, Matmul)
    head = [product.name]
    if len(group.members) > 1:
        tail_start = lowered.values[group.members[1]]
        if _is_bias(lowered, product, tail_start) and users[product.name] == [tail_start.name]:
            head.append(tail_start.name)
    library = _Open(lowered, GroupKind.LIBRARY, group.space)
    library.members = head
    library.forms = {name: Form.FULL for name in head}
    groups = [_close(lowered, library, users)]
    tail = [lowered.values[m] for m in group.members[len(head) :]]
    if tail:
        rest = _Open(lowered, GroupKind.POINTWISE, Space(group.space.full, ()))
        added = all(rest.add(value) for value in tail)
        assert added, group
        groups.append(_close(lowered, rest, users))
    return tuple(groups)


def _is_bias(lowered: LoweredGraph, product: Matmul, value: Primitive) -> bool:
    if not isinstance(value, Pointwise) or value.template != "{0} + {1}" or len(value.operands) != 2:
        return False
    first, second = value.operands
    if not (isinstance(first, Ref) and isinstance(second, Ref) and first.name == product.name):
        return False
    bias = lowered.values[second.name]
    return isinstance(bias, Input) and bias.shape == product.shape[-1:] and product.right_is_transposed
