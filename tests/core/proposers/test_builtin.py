"""The builtin proposer keeps the contract of every proposer, and is deterministic across processes."""

import dataclasses
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.config import worker_environment
from adaexplore.errors import CaptureError
from adaexplore.model.candidate import Candidate, StepKind
from adaexplore.model.evaluation import Evaluation, EvaluationStatus
from adaexplore.model.identity import candidate_id
from adaexplore.model.serialization import from_json, to_json
from adaexplore.model.task import Graph, Task
from adaexplore.proposers.builtin import BuiltinProposer
from adaexplore.search.proposal import Judged, Proposal

GRAPHS = Path(__file__).parents[1] / "codegen" / "graphs"
NAMES = sorted(path.stem for path in GRAPHS.glob("*.json"))
SMALL_SPACE = "broadcast_chain"
"""One structure with two parameters: 6 blocks times 5 numbers of warps."""


def stored_task(name: str) -> Task:
    return from_json((GRAPHS / f"{name}.json").read_text(encoding="utf-8"), Task)


def make(name: str) -> BuiltinProposer:
    return BuiltinProposer(stored_task(name), allow_tf32=False)


def large(seen: frozenset[str] = frozenset(), seed: int = 0) -> Proposal:
    return Proposal(len(seen) + 1, StepKind.LARGE, None, (), (), seen, seed)


def small(parent: Candidate, seen: frozenset[str] = frozenset(), seed: int = 0) -> Proposal:
    judged = Judged(parent, Evaluation(EvaluationStatus.INCORRECT, "compare"))
    return Proposal(len(seen) + 1, StepKind.SMALL, judged, (judged,), (), seen, seed)


def first(proposer: BuiltinProposer) -> Candidate:
    candidate = proposer.propose(large())
    assert candidate is not None
    return candidate


def differences(one: Candidate, other: Candidate) -> list[tuple[int, str]]:
    """Give group and name of each schedule parameter in which two candidates of one structure differ."""
    assert one.params["library"] == other.params["library"]
    assert one.params["structures"] == other.params["structures"]
    schedules = zip(one.params["schedules"], other.params["schedules"], strict=True)
    return [
        (i, name) for i, (a, b) in enumerate(schedules) for name in a.keys() | b.keys() if a.get(name) != b.get(name)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_proposal_gives_the_same_candidate(name: str) -> None:
    parent = first(make(name))
    for proposal in (large(), large(frozenset({parent.id})), small(parent, frozenset({parent.id}), seed=7)):
        assert make(name).propose(proposal) == make(name).propose(proposal)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_seen_is_proposed_again(name: str) -> None:
    proposer = make(name)
    seen: frozenset[str] = frozenset()
    parent = first(proposer)
    for seed in range(25):
        kind = large(seen, seed) if seed % 3 == 0 else small(parent, seen, seed)
        candidate = proposer.propose(kind)
        if candidate is None:
            continue
        assert candidate.id not in seen
        assert candidate.id == candidate_id(candidate.source)
        seen |= {candidate.id}
    assert len(seen) > 3


@pytest.mark.parametrize("name", NAMES)
def test_kind_parent_and_proposer_are_set(name: str) -> None:
    proposer = make(name)
    root = first(proposer)
    assert (root.kind, root.parent, root.proposer) == (StepKind.LARGE, None, "builtin")
    child = proposer.propose(small(root, frozenset({root.id})))
    assert child is not None
    assert (child.kind, child.parent) == (StepKind.SMALL, root.id)
    assert child.summary
    assert child.params["function"] == root.params["function"]


@pytest.mark.parametrize("name", NAMES)
def test_a_small_step_changes_one_parameter(name: str) -> None:
    proposer = make(name)
    parent = first(proposer)
    seen = frozenset({parent.id})
    for seed in range(12):
        child = proposer.propose(small(parent, seen, seed))
        if child is None:
            break
        assert len(differences(parent, child)) == 1
        seen |= {child.id}


def test_the_first_small_steps_are_to_neighbours() -> None:
    proposer = make(SMALL_SPACE)
    parent = first(proposer)
    assert parent.params["schedules"] == [{"block": 1024, "num_warps": 4}]
    seen, found = frozenset({parent.id}), []
    for seed in range(4):
        child = proposer.propose(small(parent, seen, seed))
        assert child is not None
        found.append(child.params["schedules"][0])
        seen |= {child.id}
    neighbours = [(512, 4), (2048, 4), (1024, 2), (1024, 8)]
    assert sorted((s["block"], s["num_warps"]) for s in found) == sorted(neighbours)


def test_a_small_space_is_exhausted_and_counted() -> None:
    proposer = make(SMALL_SPACE)
    root = first(proposer)
    seen, open_nodes = {root.id}, [root]
    assert proposer.propose(large(frozenset(seen))) is None, "there is one structure"
    while open_nodes:
        parent = open_nodes.pop()
        while (child := proposer.propose(small(parent, frozenset(seen)))) is not None:
            seen.add(child.id)
            open_nodes.append(child)
    assert len(seen) == 6 * 5


def test_large_steps_end() -> None:
    proposer, seen = make("linear_silu"), set()
    while (candidate := proposer.propose(large(frozenset(seen)))) is not None:
        seen.add(candidate.id)
    assert len(seen) == 5, "two ways to load times two routes, and the library"


def test_another_seed_may_take_another_step_but_the_same_large_one() -> None:
    proposer = make("rms_norm_residual")
    parent = first(proposer)
    children = {proposer.propose(small(parent, frozenset({parent.id}), seed)).id for seed in range(8)}  # type: ignore[union-attr]
    assert len(children) > 1
    assert len({proposer.propose(large(seed=seed)).id for seed in range(4)}) == 1  # type: ignore[union-attr]


def test_the_number_of_processors_shapes_the_source() -> None:
    task = stored_task("linear_silu")
    sources = {
        n: BuiltinProposer(task, allow_tf32=False, n_processors=n).propose(large()).source  # type: ignore[union-attr]
        for n in (1, 132)
    }
    assert "N_PROGRAMS=1," in sources[1]
    assert "132" not in sources[1]


@pytest.mark.parametrize("name", ["module", "names", "device"])
def test_an_argument_with_a_name_of_ours_is_refused(name: str) -> None:
    task = stored_task("gelu_bias")
    text = (
        to_json(task.graph).replace('"name": "x"', f'"name": "{name}"').replace('"source": "x"', f'"source": "{name}"')
    )
    with pytest.raises(CaptureError, match=name):
        BuiltinProposer(dataclasses.replace(task, graph=from_json(text, Graph)), allow_tf32=False)


def digest() -> str:
    """Give a hash of all that the proposer writes for the stored graphs within some steps."""
    result = hashlib.sha256()
    for name in NAMES:
        proposer = make(name)
        seen: frozenset[str] = frozenset()
        parent = first(proposer)
        for seed in range(6):
            candidate = proposer.propose(large(seen, seed) if seed % 2 else small(parent, seen, seed))
            if candidate is not None:
                result.update(repr((candidate.source, candidate.params, candidate.summary)).encode())
                seen |= {candidate.id}
    return result.hexdigest()


@pytest.mark.slow
def test_equal_choices_give_equal_bytes_in_every_process() -> None:
    script = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('contract', {str(Path(__file__))!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.digest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=worker_environment({"PYTHONHASHSEED": seed}), capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }  # fmt: skip
    assert found == {digest() + "\n"}
