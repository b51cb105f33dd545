"""Which operators become one kernel, and how each value lies in its space."""

import pytest

from adaexplore.codegen.partition import Form, Group, GroupKind, Space, broadcasts_to, classify, partition
from adaexplore.codegen.partition import with_library_product as split_product
from adaexplore.codegen.values import Matmul

from .building import Builder


def kinds(groups: tuple[Group, ...]) -> list[tuple[str, int]]:
    return [(group.kind.value, len(group.members)) for group in groups]


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((), (2, 3), True),
        ((3,), (2, 3), True),
        ((2, 1), (2, 3), True),
        ((2,), (2, 3), False),
        ((2, 3), (3,), False),
        (("s0", 1), ("s0", 4), True),
        (("s1", 1), ("s0", 4), False),
    ],
)
def test_broadcasting(shape: tuple[int | str, ...], target: tuple[int | str, ...], expected: bool) -> None:
    assert broadcasts_to(shape, target) is expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (("s0", 4, 8), Form.FULL),
        (("s0", 4, 1), Form.ROW),
        ((8,), Form.COLUMN),
        ((1, 1, 8), Form.COLUMN),
        ((4, 8), Form.PARTIAL),
        (("s0", 1, 8), Form.PARTIAL),
        ((4, 1), Form.PARTIAL_ROW),
        (("s0", 1, 1), Form.PARTIAL_ROW),
        ((), Form.SCALAR),
        ((1, 1, 1), Form.SCALAR),
        (("s0", 4), None),
        ((4,), None),
    ],
)
def test_forms_in_a_space_of_rows(shape: tuple[int | str, ...], expected: Form | None) -> None:
    assert classify(shape, Space(("s0", 4), (8,))) is expected


def test_a_space_of_one_element_is_full() -> None:
    assert classify((1, 1), Space((1,), (1,))) is Form.FULL


def test_a_chain_is_one_pointwise_group() -> None:
    b = Builder()
    x, y = b.argument("x", 6, 8), b.argument("y", 8)
    out = b.op("exp", b.op("mul", x, y, shape=(6, 8)), shape=(6, 8))
    (group,) = partition(b.lowered(out))
    assert group.kind is GroupKind.POINTWISE
    assert group.space == Space((6, 8), ())
    assert (group.inputs, group.outputs) == (("x", "y"), ("exp",))


def test_a_space_grows_with_broadcasting() -> None:
    b = Builder()
    column, row = b.argument("x", 6, 1), b.argument("y", 8)
    out = b.op("mul", b.op("exp", column, shape=(6, 1)), row, shape=(6, 8))
    (group,) = partition(b.lowered(out))
    assert group.space.full == (6, 8)
    assert group.members == ("exp", "mul")


def test_a_reduction_turns_its_group_into_rows() -> None:
    b = Builder()
    x = b.argument("x", 6, 8)
    scaled = b.op("mul", x, 2.0, shape=(6, 8))
    total = b.op("sum", scaled, (-1,), True, shape=(6, 1))
    out = b.op("div", scaled, total, shape=(6, 8))
    (group,) = partition(b.lowered(out))
    assert group.kind is GroupKind.ROWS
    assert group.space == Space((6,), (8,))
    assert [group.forms[m] for m in group.members] == [Form.FULL, Form.ROW, Form.FULL]


def test_flat_rows_stay_apart_from_columns_of_the_same_length() -> None:
    b = Builder()
    x, target = b.argument("x", 8, 8), b.argument("target", 8)
    total = b.op("sum", x, (-1,), shape=(8,))
    out = b.op("sub", total, target, shape=(8,))
    (group,) = partition(b.lowered(out))
    assert group.forms["target"] is Form.FLAT_ROW
    assert group.forms["sub"] is Form.FLAT_ROW


def test_a_repeated_value_that_is_an_output_gets_its_own_kernel() -> None:
    b = Builder()
    scores, keep = b.argument("scores", 2, 3, 4), b.argument("keep", 2, 1, 4)
    mask = b.op("mul", keep, -100.0, shape=(2, 1, 4))
    total = b.op("sum", b.op("add", scores, mask, shape=(2, 3, 4)), (-1,), shape=(2, 3))
    groups = partition(b.lowered(total, mask))
    assert kinds(groups) == [("pointwise", 1), ("rows", 2)]
    assert groups[0].outputs == ("mul",)
    assert groups[1].forms["mul"] is Form.PARTIAL


def test_a_repeated_value_that_is_no_output_stays_inside() -> None:
    b = Builder()
    scores, keep = b.argument("scores", 2, 3, 4), b.argument("keep", 2, 1, 4)
    mask = b.op("mul", keep, -100.0, shape=(2, 1, 4))
    total = b.op("sum", b.op("add", scores, mask, shape=(2, 3, 4)), (-1,), shape=(2, 3))
    (group,) = partition(b.lowered(total))
    assert group.forms["mul"] is Form.PARTIAL


def test_outputs_are_what_others_read_and_what_forward_returns() -> None:
    b = Builder()
    x = b.argument("x", 6, 8)
    first = b.op("exp", x, shape=(6, 8))
    total = b.op("sum", first, (0, 1), shape=())
    out = b.op("div", first, total, shape=(6, 8))
    groups = partition(b.lowered(out))
    assert {o for g in groups for o in g.outputs} >= {"div"}
    written = [o for g in groups for o in g.outputs]
    assert len(written) == len(set(written))
    for position, group in enumerate(groups):
        known = {o for g in groups[:position] for o in g.outputs} | {"x"}
        assert set(group.inputs) <= known, "a group reads only what was written before it"


def test_a_product_takes_its_epilogue_and_leaves_reductions() -> None:
    b = Builder()
    x, w, bias = b.argument("x", 6, 8), b.parameter("up.weight", 5, 8), b.parameter("up.bias", 5)
    product = b.op("linear", x, w, bias, shape=(6, 5))
    out = b.op("exp", product, shape=(6, 5))
    total = b.op("sum", out, (-1,), shape=(6,))
    groups = partition(b.lowered(total))
    assert [g.kind for g in groups] == [GroupKind.MATMUL, GroupKind.ROWS]
    assert groups[0].forms["p_up_bias"] is Form.COLUMN


def test_the_library_takes_the_product_with_its_bias() -> None:
    b = Builder()
    x, w, bias = b.argument("x", 6, 8), b.parameter("up.weight", 5, 8), b.parameter("up.bias", 5)
    out = b.op("exp", b.op("linear", x, w, bias, shape=(6, 5)), shape=(6, 5))
    lowered = b.lowered(out)
    (group,) = partition(lowered)
    library, rest = split_product(lowered, group)
    assert (library.kind, len(library.members)) == (GroupKind.LIBRARY, 2)
    assert isinstance(lowered.values[library.members[0]], Matmul)
    assert (rest.kind, rest.members) == (GroupKind.POINTWISE, ("exp",))


def test_a_reshape_is_no_kernel() -> None:
    b = Builder()
    x = b.argument("x", 6, 8)
    flat = b.op("view", b.op("exp", x, shape=(6, 8)), (48,), shape=(48,))
    out = b.op("neg", flat, shape=(48,))
    assert kinds(partition(b.lowered(out))) == [("pointwise", 1), ("view", 1), ("pointwise", 1)]


def test_what_nobody_reads_is_dropped() -> None:
    b = Builder()
    x = b.argument("x", 6)
    b.op("exp", x, shape=(6,))
    out = b.op("neg", x, shape=(6,))
    (group,) = partition(b.lowered(out))
    assert group.members == ("neg",)
