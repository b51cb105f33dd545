"""What every executor can be asked."""

from __future__ import annotations

from typing import Protocol

from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation


class Executor(Protocol):
    """Evaluates candidates of one task.

    Called from one thread at a time. A candidate's fault is a status; an exception is a fault of the machine. Whatever
    happens, the next call works on fresh or healthy workers. ``close`` leaves no process behind.
    """

    def evaluate(self, candidate: Candidate) -> Evaluation:
        """Give the verdict on a candidate.

        Raises:
            Stopped: The stop event was set meanwhile.
            WorkerError: The machine is at fault.
        """
        ...

    def confirm(self, candidate: Candidate) -> Evaluation:
        """Evaluate once more in fresh processes, before the candidate is announced."""
        ...

    def available_parallelism(self) -> int:
        """Give how many evaluations could run at the same time."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...
