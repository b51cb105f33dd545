"""What past searches found for a module, as the store has it now: the server holds no truth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaexplore.model.evaluation import Evaluation, EvaluationStatus
from adaexplore.model.run import Run, RunOutcome, StepRecord
from adaexplore.store.sqlite import FILE_NAME, SqliteStore
from adaexplore_lsp.jobs import Target

_Signature = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """An ended run, and what is known of its best candidate."""

    run: Run
    evaluation: Evaluation | None
    """The best's confirmation in a fresh process where there is one, else its first evaluation."""

    @property
    def insertable(self) -> bool:
        """Whether it is verified, and faster where it was measured."""
        evaluation = self.evaluation
        if self.run.best_step is None or evaluation is None or evaluation.status is not EvaluationStatus.PASSED:
            return False
        if self.run.outcome not in (RunOutcome.IMPROVED, RunOutcome.VERIFIED, RunOutcome.CANCELLED):
            return False
        return evaluation.measurement is None or evaluation.measurement.speedup > 1


class Results:
    """Reads the store; again whenever its files have changed."""

    def __init__(self) -> None:
        self._signature: _Signature = ()
        self._known: dict[tuple[Path, Target], tuple[Result, ...]] = {}

    def of(self, data_dir: Path, target: Target) -> tuple[Result, ...]:
        """Give the ended runs on ``target``, newest first; none where there is no store.

        Raises:
            StoreError: The store cannot be read.
        """
        signature = _signature(data_dir)
        if not signature:
            return ()
        if signature != self._signature:
            self._known.clear()
            self._signature = signature
        key = (data_dir, target)
        if key not in self._known:
            with _opened(data_dir) as store:
                ended = [run for run in _runs(store, target) if run.outcome is not RunOutcome.OPEN]
                self._known[key] = tuple(Result(run, run.final or _evaluation(store, run)) for run in ended)
        return self._known[key]

    def best(self, data_dir: Path, run: Run) -> StepRecord:
        """Give the step of a run's best candidate, which there must be.

        Raises:
            StoreError: The store cannot be read.
        """
        with _opened(data_dir) as store:
            return _step(store, run)


def present(results: tuple[Result, ...], source_hash: str) -> Result | None:
    """Give the newest result for a class text, an insertable one first."""
    fitting = [result for result in results if result.run.task.source_hash == source_hash]
    return next((result for result in fitting if result.insertable), fitting[0] if fitting else None)


def _runs(store: SqliteStore, target: Target) -> list[Run]:
    """Give the runs under both names of a file below a link: editors differ in which one they use."""
    paths = {target.path, os.path.realpath(target.path)}
    runs = [run for path in paths for run in store.runs_for(path, target.name)]
    return sorted(runs, key=lambda run: run.created_at, reverse=True) if len(paths) > 1 else runs


def _evaluation(store: SqliteStore, run: Run) -> Evaluation | None:
    return None if run.best_step is None else _step(store, run).evaluation


def _step(store: SqliteStore, run: Run) -> StepRecord:
    return next(record for record in store.steps(run.id) if record.step == run.best_step)


def _signature(data_dir: Path) -> _Signature:
    found = []
    for name in (FILE_NAME, f"{FILE_NAME}-wal"):
        try:
            stat = (data_dir / name).stat()
        except OSError:
            continue
        found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


@contextmanager
def _opened(data_dir: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(data_dir)
    try:
        yield store
    finally:
        store.close()
