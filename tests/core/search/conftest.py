from collections.abc import Callable

import pytest

from adaexplore.model.candidate import Candidate, CandidateId
from adaexplore.model.evaluation import Correctness, Evaluation, EvaluationStatus, Measurement, Timing
from adaexplore.model.task import Environment
from adaexplore.search.proposal import Proposal

Passed = Callable[[float | None], Evaluation]
Answer = Callable[[Proposal, str], Candidate]


@pytest.fixture
def passed() -> Passed:
    """Give a passed evaluation with a speedup, or without a measurement."""

    def make(speedup: float | None) -> Evaluation:
        correctness = Correctness("gpu", 1, 0.0, 0.0, 0.0, 0.0)
        if speedup is None:
            return Evaluation(EvaluationStatus.PASSED, "measure", correctness=correctness)
        measurement = Measurement(Timing(1.0, 1.0, 1.0, 9), Timing(speedup, speedup, speedup, 9), None)
        return Evaluation(
            EvaluationStatus.PASSED,
            "measure",
            correctness=correctness,
            measurement=measurement,
            environment=Environment("3.11", "2.13", "3.6", gpu="a GPU"),
        )

    return make


@pytest.fixture
def answer() -> Answer:
    """Give a candidate that is what a proposal asked for."""

    def make(proposal: Proposal, name: str) -> Candidate:
        parent = None if proposal.parent is None else proposal.parent.candidate.id
        return Candidate(CandidateId(name), f"# {name}", "fake", proposal.kind, parent)

    return make
