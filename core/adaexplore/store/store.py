"""What every store promises."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from adaexplore.errors import UsageError
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.run import Run, RunId, RunOutcome, StepRecord


class Store(Protocol):
    """Runs and their steps, shared by the search, the command line and the server.

    **Durability**: what a method wrote is on disk when it returns, and survives the death of any process and of
    the machine. A method that raised one of its errors has written nothing. Tell nobody of a step before
    :meth:`add_step` returned.

    **Concurrency**: one store may be used by any number of threads, and many stores, in as many processes, may
    share one folder; calls wait for each other. Every call sees all that was written before it, by anybody.

    **Ownership**: only the holder of :meth:`lock_run` writes to a run after :meth:`create_run`. The store does not
    check that. Reading needs no lock.

    **Immutability**: steps are appended, never changed or removed. What is returned is frozen data of the caller's.

    **Names**: a ``run_id`` is a whole id, except where a prefix is allowed. An unknown one raises ``UsageError``.

    **Faults**: ``StoreUnwritableError`` where the disk is full, the folder does not take writes or the file is not a
    store; it may come from any method. ``ValueError`` is a caller's defect: it breaks the contract.
    """

    def create_run(self, run: Run) -> None:
        """Add a new run, which is ``OPEN`` and has no best step.

        Raises:
            ValueError: There is a run with this id, or this one is not new.
        """

    def add_step(self, record: StepRecord) -> None:
        """Append the next step of a run.

        Raises:
            UsageError: No such run.
            ValueError: It is not the next step, or its candidate was evaluated in this run before.
        """

    def finish_run(
        self, run_id: RunId, outcome: RunOutcome, seconds: float, best_step: int | None, final: Evaluation | None
    ) -> None:
        """Write how a run ended; again for a run that is finished, which replaces what was written.

        Args:
            run_id: The run.
            outcome: How it ended.
            seconds: Time spent, over all sessions of the run.
            best_step: Step of the best candidate, where one passed.
            final: The best candidate's confirmation.

        Raises:
            UsageError: No such run.
            ValueError: The run has no step ``best_step``, or ``outcome`` is ``OPEN``.
        """

    def reopen(self, run_id: RunId, steps: int | None = None) -> Run:
        """Make a run ``OPEN`` again, so that it can go on from its steps, and give it.

        Its outcome, best step and confirmation are cleared; seconds and steps are kept. An open run stays as it is.

        Args:
            run_id: The run.
            steps: A new limit in ``settings.steps``, the steps already taken included; None keeps it.

        Raises:
            UsageError: No such run.
        """

    def get_run(self, run_id: str) -> Run:
        """Give the run with this id, or else the only one whose id begins so.

        Raises:
            UsageError: No run, or several.
        """

    def list_runs(self) -> tuple[Run, ...]:
        """Give all runs, the newest first."""

    def runs_for(self, path: str, class_name: str) -> tuple[Run, ...]:
        """Give the runs of one class of one file, the newest first.

        Args:
            path: As in ``Task.path``: absolute.
            class_name: As in ``Task.class_name``.
        """

    def steps(self, run_id: RunId) -> tuple[StepRecord, ...]:
        """Give the steps of a run in order.

        Raises:
            UsageError: No such run.
        """

    def lock_run(self, run_id: RunId) -> AbstractContextManager[None]:
        """Own a run while the context lasts. The end of the process, of whatever kind, ends the ownership.

        Not reentrant. The run need not exist yet, so that it is owned from the moment it is seen.

        Raises:
            RunLockedError: On entering: somebody alive owns it; names the process.
        """

    def run_is_active(self, run_id: RunId) -> bool:
        """Say whether somebody alive owns the run. An open run that is not active was interrupted."""

    def close(self) -> None:
        """Release the store; no method but this may be called afterwards."""


def unknown_run(run_id: str, matches: list[RunId]) -> UsageError:
    """Give the error for an id that names no run, or several."""
    if not matches:
        return UsageError(reason=f"no run {run_id!r}", run_id=run_id, hint="See `adaexplore runs list`.")
    reason = f"{run_id!r} is the beginning of {len(matches)} runs: {', '.join(sorted(matches))}"
    return UsageError(reason=reason, run_id=run_id, hint="Give more of the id.")


def require_new(run: Run) -> None:
    """Check that ``run`` has not been worked on.

    Raises:
        ValueError: It has an outcome.
    """
    if (run.outcome, run.best_step, run.final) != (RunOutcome.OPEN, None, None):
        raise ValueError(f"run {run.id} is not new")
