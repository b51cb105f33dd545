from collections.abc import Callable

import pytest

from adaexplore.model.evaluation import Evaluation, EvaluationStatus
from adaexplore.search.reward import better, reward

Passed = Callable[[float | None], Evaluation]


@pytest.mark.parametrize(
    ("speedup", "expected"),
    [
        # The values that the authors' formula gives (research/peers.md 4.4).
        (1.0, 0.509),
        (2.0, 0.630),
        (5.0, 0.994),
        (10.0, 1.6),
        (0.1, 0.4),
        (0.001, 0.4),
        (700.0, 1.6),
        (None, 0.509),
    ],
)
def test_a_correct_candidate_is_rewarded_by_its_clipped_speedup(
    passed: Passed, speedup: float | None, expected: float
) -> None:
    assert reward(passed(speedup)) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("status", "stage", "expected"),
    [
        (EvaluationStatus.REJECTED, "parse", 0.0),
        (EvaluationStatus.REJECTED, "compare", 0.0),
        (EvaluationStatus.COMPILE_ERROR, "compile", 0.0),
        (EvaluationStatus.COMPILE_ERROR, "run", 0.0),
        (EvaluationStatus.OUT_OF_MEMORY, "compile", 0.0),
        (EvaluationStatus.CRASHED, "compile", 0.0),
        (EvaluationStatus.TIMEOUT, "compile", 0.0),
        (EvaluationStatus.RUNTIME_ERROR, "compile", 0.0),
        (EvaluationStatus.RUNTIME_ERROR, "run", 0.05),
        (EvaluationStatus.OUT_OF_MEMORY, "run", 0.05),
        (EvaluationStatus.CRASHED, "compare", 0.05),
        (EvaluationStatus.TIMEOUT, "compare", 0.05),
        (EvaluationStatus.INCORRECT, "compare", 0.05),
        (EvaluationStatus.CONTRACT_BROKEN, "contract", 0.05),
        (EvaluationStatus.UNDECIDED, "compare", 0.05),
        (EvaluationStatus.CRASHED, "measure", 0.05),
    ],
)
def test_a_failure_is_rewarded_for_compiling(status: EvaluationStatus, stage: str, expected: float) -> None:
    assert reward(Evaluation(status, stage)) == expected


def test_better_puts_passed_first_then_measured_then_speedup(passed: Passed) -> None:
    worst_to_best = [
        Evaluation(EvaluationStatus.INCORRECT, "compare"),
        passed(None),
        passed(0.5),
        passed(20.0),
        passed(30.0),
    ]
    for i, evaluation in enumerate(worst_to_best):
        assert [better(evaluation, other) for other in worst_to_best] == [i > j for j in range(len(worst_to_best))]
