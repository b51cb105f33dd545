"""The tree finds a planted optimum in fewer evaluations than random search, on simulated landscapes."""

import math
from dataclasses import dataclass
from random import Random
from statistics import median

import pytest

from adaexplore.model.candidate import Candidate, CandidateId, StepKind
from adaexplore.model.evaluation import Correctness, Evaluation, EvaluationStatus, Measurement, Timing
from adaexplore.model.task import Environment
from adaexplore.search.mcts import SearchTree
from adaexplore.search.policy import SearchPolicy
from adaexplore.search.proposal import Proposal

STRUCTURES, VALUES, DETAILS = 6, 8, 2
LIMIT = STRUCTURES * VALUES**DETAILS
SEEDS = range(15)
Point = tuple[int, ...]
"""A structure, then the value of each schedule parameter."""


@dataclass(frozen=True)
class Landscape:
    """Speedups peak at one schedule of one structure; ``broken`` of all candidates are incorrect."""

    optimum: Point
    broken: float
    seed: int

    def evaluate(self, point: Point) -> Evaluation:
        if point != self.optimum and Random(f"{self.seed}:{point}").random() < self.broken:
            return Evaluation(EvaluationStatus.INCORRECT, "compare")
        structure_speedup = 4.0 / (1 + abs(point[0] - self.optimum[0]))
        distance = sum(abs(a - b) for a, b in zip(point[1:], self.optimum[1:], strict=True))
        speedup = structure_speedup * math.exp(-0.15 * distance)
        return Evaluation(
            EvaluationStatus.PASSED,
            "measure",
            correctness=Correctness("gpu", 1, 0.0, 0.0, 0.0, 0.0),
            measurement=Measurement(Timing(1.0, 1.0, 1.0, 9), Timing(speedup, speedup, speedup, 9), None),
            environment=Environment("3.11", "2.13", "3.6", gpu="a GPU"),
        )


def propose(proposal: Proposal) -> Candidate | None:
    """Large: any schedule of any structure. Small: one parameter of the parent moved by one."""
    random = Random(proposal.seed)
    if proposal.kind is StepKind.LARGE or proposal.parent is None:
        points = [_random_point(random) for _ in range(50)]
    else:
        points = _neighbours(_point(proposal.parent.candidate))
        random.shuffle(points)
    parent = None if proposal.parent is None else proposal.parent.candidate.id
    for point in points:
        if repr(point) not in proposal.seen:
            name = CandidateId(repr(point))
            return Candidate(name, name, "fake", proposal.kind, parent, {"point": list(point)})
    return None


def _random_point(random: Random) -> Point:
    return (random.randrange(STRUCTURES), *(random.randrange(VALUES) for _ in range(DETAILS)))


def _neighbours(point: Point) -> list[Point]:
    moved = [
        (*point[:i], point[i] + by, *point[i + 1 :])
        for i in range(1, len(point))
        for by in (-1, 1)
        if 0 <= point[i] + by < VALUES
    ]
    return list(moved)


def _point(candidate: Candidate) -> Point:
    values = candidate.params["point"]
    assert isinstance(values, list)
    return tuple(values)


def evaluations_of_tree_search(landscape: Landscape, seed: int) -> int:
    tree = SearchTree(SearchPolicy(), seed)
    while (proposal := tree.ask()) is not None and tree.steps < LIMIT:
        candidate = propose(proposal)
        if candidate is None:
            tree.decline(proposal)
            continue
        tree.tell(proposal, candidate, landscape.evaluate(_point(candidate)))
        if _point(candidate) == landscape.optimum:
            return tree.steps
    return LIMIT


def evaluations_of_random_search(landscape: Landscape, seed: int) -> int:
    """Without replacement: also a random search never evaluates a duplicate."""
    random = Random(seed)
    seen: set[Point] = set()
    while True:
        point = _random_point(random)
        seen.add(point)
        if point == landscape.optimum:
            return len(seen)


# Known limit: at a corner whose few neighbours are largely broken ((0, 0, 7) with 0.3) the paper's policy is no
# better than chance; valuing nodes by their maximum (``reward_alpha=1``) needs about half of its evaluations.
@pytest.mark.parametrize(("optimum", "broken"), [((4, 3, 2), 0.0), ((4, 3, 2), 0.3), ((0, 0, 7), 0.0)], ids=str)
def test_the_tree_finds_a_planted_optimum_sooner_than_random_search(optimum: Point, broken: float) -> None:
    landscapes = [Landscape(optimum, broken, seed) for seed in SEEDS]
    tree = [evaluations_of_tree_search(landscape, landscape.seed) for landscape in landscapes]
    by_chance = [evaluations_of_random_search(landscape, landscape.seed) for landscape in landscapes]
    assert median(tree) <= 0.75 * median(by_chance), (sorted(tree), sorted(by_chance))
