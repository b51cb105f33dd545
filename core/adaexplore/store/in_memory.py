"""The store in memory: for tests, and where nothing is to be kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from adaexplore.errors import RunLockedError
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.run import Run, RunId, RunOutcome, StepRecord
from adaexplore.store.store import require_new, unknown_run


class InMemoryStore:
    """A :class:`~adaexplore.store.store.Store` without durability: it ends with the process, and no other sees it."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._runs: dict[RunId, Run] = {}
        self._steps: dict[RunId, list[StepRecord]] = {}
        self._locked: set[RunId] = set()

    def create_run(self, run: Run) -> None:  # noqa: D102 - the Protocol documents the methods
        require_new(run)
        with self._mutex:
            if run.id in self._runs:
                raise ValueError(f"there is a run {run.id}")
            self._runs[run.id] = run
            self._steps[run.id] = []

    def add_step(self, record: StepRecord) -> None:  # noqa: D102
        with self._mutex:
            self._require(record.run_id)
            steps = self._steps[record.run_id]
            if record.step != len(steps) + 1:
                raise ValueError(f"step {record.step} of run {record.run_id} does not follow step {len(steps)}")
            if any(step.candidate.id == record.candidate.id for step in steps):
                raise ValueError(f"candidate {record.candidate.id} of run {record.run_id} was evaluated before")
            steps.append(record)

    def finish_run(  # noqa: D102
        self, run_id: RunId, outcome: RunOutcome, seconds: float, best_step: int | None, final: Evaluation | None
    ) -> None:
        if outcome is RunOutcome.OPEN:
            raise ValueError("an open run is not finished")
        with self._mutex:
            run = self._require(run_id)
            if best_step is not None and not 1 <= best_step <= len(self._steps[run_id]):
                raise ValueError(f"run {run_id} has no step {best_step}")
            self._runs[run_id] = replace(run, outcome=outcome, seconds=seconds, best_step=best_step, final=final)

    def reopen(self, run_id: RunId, steps: int | None = None) -> Run:  # noqa: D102
        with self._mutex:
            run = self._require(run_id)
            settings = run.settings if steps is None else replace(run.settings, steps=steps)
            run = replace(run, settings=settings, outcome=RunOutcome.OPEN, best_step=None, final=None)
            self._runs[run_id] = run
            return run

    def get_run(self, run_id: str) -> Run:  # noqa: D102
        with self._mutex:
            if run_id in self._runs:
                return self._runs[RunId(run_id)]
            matches = [known for known in self._runs if run_id and known.startswith(run_id)]
            if len(matches) != 1:
                raise unknown_run(run_id, matches)
            return self._runs[matches[0]]

    def list_runs(self) -> tuple[Run, ...]:  # noqa: D102
        with self._mutex:
            newest_first = reversed(self._runs.values())
            return tuple(sorted(newest_first, key=lambda run: run.created_at, reverse=True))

    def runs_for(self, path: str, class_name: str) -> tuple[Run, ...]:  # noqa: D102
        return tuple(run for run in self.list_runs() if (run.task.path, run.task.class_name) == (path, class_name))

    def steps(self, run_id: RunId) -> tuple[StepRecord, ...]:  # noqa: D102
        with self._mutex:
            self._require(run_id)
            return tuple(self._steps[run_id])

    @contextmanager
    def lock_run(self, run_id: RunId) -> Iterator[None]:  # noqa: D102
        with self._mutex:
            if run_id in self._locked:
                raise RunLockedError(run_id=run_id, pid=str(os.getpid()))
            self._locked.add(run_id)
        try:
            yield
        finally:
            with self._mutex:
                self._locked.remove(run_id)

    def run_is_active(self, run_id: RunId) -> bool:  # noqa: D102
        with self._mutex:
            return run_id in self._locked

    def close(self) -> None:  # noqa: D102
        pass

    def _require(self, run_id: RunId) -> Run:
        if run_id not in self._runs:
            raise unknown_run(run_id, [])
        return self._runs[run_id]
