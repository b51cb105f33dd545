"""Candidates of all structures, with random schedules, agree with their modules in Triton's interpreter."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from adaexplore.codegen.lowering import _SPECIAL
from adaexplore.codegen.operators import POINTWISE
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import EvaluationStatus
from adaexplore.model.task import Task
from adaexplore.proposers.builtin import BuiltinProposer

from .laboratory import ZOO, Laboratory, all_large, classes, interpreting, wandered
from .stored import as_candidate, write

LONG = ("LongRows", "LongSoftmax", "LongPartial")
"""Rows of thousands, at which the interpreter is slow: a few chosen schedules."""
MODULES = [(path, name) for path, name in classes(*sorted(ZOO.glob("*.py"))) if name not in LONG]
MOST_STRUCTURES = 2
"""A module: its first structures, or a sample where there are more."""
NEVER_CAPTURED = {
    # `torch.export` turns these into others before we see them; other versions of torch may not
    "_unsafe_view", "alias", "bitwise_not", "bitwise_or", "bitwise_xor", "bitwise_and", "contiguous", "detach",
    "logical_and", "logical_not", "logical_or", "mm", "rsub", "reshape", "square", "clamp_max", "clamp_min",
}  # fmt: skip


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    laboratory = interpreting(tmp_path_factory.mktemp("laboratory"))
    yield laboratory
    laboratory.worker.kill()


def candidates(task: Task) -> list[Candidate]:
    """Give one candidate of each structure, no or some steps away from its defaults."""
    proposer = BuiltinProposer(task, allow_tf32=False)
    random = Random(zlib.crc32(task.class_name.encode()))
    large = list(all_large(proposer))
    if len(large) > MOST_STRUCTURES:
        large = [large[0], *random.sample(large[1:], MOST_STRUCTURES - 1)]
    return [wandered(proposer, candidate, random, random.randint(0, 6)) for candidate in large]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), MODULES, ids=[name for _, name in MODULES])
def test_candidates_agree_with_their_module(laboratory: Laboratory, path: Path, name: str) -> None:
    task = laboratory.capture(path, name)
    for candidate in candidates(task):
        evaluation = laboratory.compare(task, candidate)
        assert evaluation.status is EvaluationStatus.PASSED, (
            f"{candidate.summary}: {evaluation.detail}\n{candidate.source}"
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "structure", "changes"),
    [
        ("LongRows", "loop", {"block": 256}),
        ("LongRows", "block", {"rows_per_program": 2}),
        ("LongSoftmax", "loop", {"block": 512}),
        ("LongPartial", "loop", {"block": 1024}),
        ("LongPartial", "block", {"rows_per_program": 4}),
    ],
)
def test_long_rows_are_held_at_once_or_walked(
    laboratory: Laboratory, name: str, structure: str, changes: dict[str, int]
) -> None:
    place = (ZOO / "rows.py", name)
    task = laboratory.tasks.get(place) or laboratory.capture(*place)
    emitted = write(task, structure, **changes)
    evaluation = laboratory.compare(task, as_candidate(emitted))
    assert evaluation.status is EvaluationStatus.PASSED, f"{evaluation.detail}\n{emitted.source}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_processors", "way", "persistent", "whole_waves"),
    [
        (132, "pointers", 0, 0), (5, "pointers", 1, 0), (4, "pointers", 0, 1), (5, "pointers", 1, 1),
        (132, "descriptors", 1, 1), (5, "descriptors", 1, 0), (5, "descriptors", 0, 1), (1, "descriptors", 1, 1),
    ],
)  # fmt: skip
def test_every_tile_is_computed_once(
    laboratory: Laboratory, n_processors: int, way: str, persistent: int, whole_waves: int
) -> None:
    """3 tiles down by 4 across: more and fewer than there are processors, and splits within and at the edge."""
    place = (ZOO / "products.py", "Tiles")
    task = laboratory.tasks.get(place) or laboratory.capture(*place)
    emitted = write(
        task, f"{way} ieee", n_processors=n_processors, persistent=persistent, whole_waves=whole_waves,
        block_m=16, block_n=32, block_k=16, group_m=2,
    )  # fmt: skip
    evaluation = laboratory.compare(task, as_candidate(emitted))
    assert evaluation.status is EvaluationStatus.PASSED, f"{evaluation.detail}\n{emitted.source}"


@pytest.mark.slow
def test_every_lowering_was_tried(laboratory: Laboratory) -> None:
    seen = {op.target.split(".")[1] for task in laboratory.tasks.values() for op in task.graph.operators}
    if len(laboratory.tasks) < len(MODULES) + len(LONG):
        pytest.skip("only some of the modules were chosen")
    assert (set(POINTWISE) | set(_SPECIAL)) - seen <= NEVER_CAPTURED
