import math

import pytest

from adaexplore.search.budget import Budget


@pytest.mark.parametrize(
    ("budget", "steps", "elapsed", "spent"),
    [
        (Budget(3), 2, 1e9, False),
        (Budget(3), 3, 0.0, True),
        (Budget(3), 4, 0.0, True),
        (Budget(0), 0, 0.0, True),
        (Budget(3, 10.0), 0, 9.9, False),
        (Budget(3, 10.0), 0, 10.0, True),
        (Budget(3, 0.0), 0, 0.0, True),
    ],
)
def test_a_budget_is_spent_at_either_limit(budget: Budget, steps: int, elapsed: float, spent: bool) -> None:
    assert budget.is_spent(steps, elapsed) is spent


def test_what_is_left_is_never_negative() -> None:
    assert Budget(3, 10.0).steps_left(5) == 0
    assert Budget(3, 10.0).seconds_left(11.0) == 0.0
    assert Budget(3).seconds_left(11.0) == math.inf


@pytest.mark.parametrize(("steps", "seconds"), [(-1, None), (1, -0.1), (1, math.nan)])
def test_a_negative_budget_cannot_be_built(steps: int, seconds: float | None) -> None:
    with pytest.raises(ValueError, match="not negative"):
        Budget(steps, seconds)
