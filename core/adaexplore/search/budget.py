"""What a run may still spend: steps and seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; what was spent is passed in, since the search has no clock.

    **Invariant**: neither limit is negative.
    """

    steps: int
    """Candidates in all, those of earlier sessions of the run included."""
    seconds: float | None = None
    """Wall time in all; None is no limit."""

    def __post_init__(self) -> None:
        if self.steps < 0 or (self.seconds is not None and not self.seconds >= 0):
            raise ValueError(f"a budget is not negative: {self}")

    def steps_left(self, steps: int) -> int:
        """Give how many candidates may follow after ``steps``; never negative."""
        return max(0, self.steps - steps)

    def seconds_left(self, elapsed_seconds: float) -> float:
        """Give the wall time left, ``inf`` where there is no limit; never negative."""
        return math.inf if self.seconds is None else max(0.0, self.seconds - elapsed_seconds)

    def is_spent(self, steps: int, elapsed_seconds: float) -> bool:
        """Say whether no further candidate may be started."""
        return self.steps_left(steps) == 0 or self.seconds_left(elapsed_seconds) == 0.0
