"""Schedule spaces and numeric routes."""

import pytest

from adaexplore.codegen.emit import new_emission
from adaexplore.codegen.lowering import lower_task
from adaexplore.codegen.partition import GroupKind, partition
from adaexplore.codegen.registry import FAMILIES, family_of
from adaexplore.codegen.routes import routes
from adaexplore.codegen.schedule import Choice, defaults, next_power_of_two, powers_of_two

from .capture_graphs import FIXTURES
from .stored import stored_task


def test_powers_of_two() -> None:
    assert powers_of_two(1, 8) == (1, 2, 4, 8)
    assert powers_of_two(256, 300) == (256,)
    assert [next_power_of_two(n) for n in (0, 1, 2, 3, 4, 5, 1000, 1024)] == [1, 1, 2, 4, 4, 8, 1024, 1024]


def test_a_default_is_one_of_the_values() -> None:
    with pytest.raises(AssertionError):
        Choice("block", (1, 2), 3)
    assert defaults((Choice("block", (1, 2), 2), Choice("warps", (4,), 4))) == {"block": 2, "warps": 4}


@pytest.mark.parametrize(
    ("dtype", "allow_tf32", "expected"),
    [
        ("float32", False, ("tf32x3", "ieee")),
        ("float32", True, ("tf32", "tf32x3")),
        ("bfloat16", False, ("",)),
        ("float16", True, ("",)),
    ],
)
def test_routes_follow_the_policy(dtype: str, allow_tf32: bool, expected: tuple[str, ...]) -> None:
    assert routes(dtype, allow_tf32=allow_tf32) == expected


def test_each_kind_of_kernel_has_one_family() -> None:
    assert sorted(f.kind for f in FAMILIES) == sorted([GroupKind.POINTWISE, GroupKind.ROWS, GroupKind.MATMUL])


@pytest.mark.parametrize("name", FIXTURES)
def test_spaces_are_ordered_powers_of_two(name: str) -> None:
    task = stored_task(name)
    lowered = lower_task(task)
    emission = new_emission(task, lowered, allow_tf32=False, n_processors=132)
    for group in partition(lowered):
        if group.kind is GroupKind.VIEW:
            continue
        family = family_of(group)
        for structure in family.structures(emission, group):
            space = family.space(emission, group, structure)
            assert len({choice.name for choice in space}) == len(space)
            for choice in space:
                assert list(choice.values) == sorted(set(choice.values))
            assert family.describe(structure, defaults(space))
