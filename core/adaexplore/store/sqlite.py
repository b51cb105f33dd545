"""The store in one SQLite file, with the locks of runs beside it."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from adaexplore.errors import RunLockedError, SchemaVersionError, StoreUnwritableError
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.run import Run, RunId, RunOutcome, RunSettings, StepRecord
from adaexplore.model.serialization import from_json, to_json
from adaexplore.model.task import Environment, Task
from adaexplore.store.locks import LockedError, exclusive_lock, is_locked, waiting_lock
from adaexplore.store.store import require_new, unknown_run

FILE_NAME = "adaexplore.sqlite3"
BUSY_SECONDS = 30.0
"""How long a call waits for other processes; their transactions take milliseconds."""

_NOT_A_STORE_HINT = "Move the file away, or choose another folder with ADAEXPLORE_DATA_DIR."
_RUN_COLUMNS = "id, task, settings, environment, created_at, outcome, seconds, best_step, final"


def migrations() -> tuple[str, ...]:
    """Give the SQL of all migrations in order; the n-th leads to schema version n."""
    folder = files("adaexplore.store") / "migrations"
    scripts = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(file.read_text(encoding="utf-8") for file in scripts)


class SqliteStore:
    """A :class:`~adaexplore.store.store.Store` in ``data_dir``, which is made where it is missing.

    WAL, so that readers and the writer do not wait for each other. ``synchronous=FULL``, since with ``NORMAL`` a WAL
    file may lose its last transactions when the power fails; a step costs seconds, a sync milliseconds.

    Raises:
        StoreUnwritableError: The folder cannot be made or written, or the file is not a database.
        SchemaVersionError: The file is of a newer program.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE_NAME
        self._locks = data_dir / "locks"
        self._mutex = threading.RLock()
        try:
            # One process at a time: SQLite does not wait when two switch a new file to WAL at once.
            with waiting_lock(self._locks / "open.lock"):
                self._db = self._connect()
        except OSError as error:
            self._raise_unwritable(error)

    def create_run(self, run: Run) -> None:  # noqa: D102 - the Protocol documents the methods
        require_new(run)
        values = (
            run.id,
            run.task.path,
            run.task.class_name,
            run.created_at,
            *(to_json(part) for part in (run.task, run.settings, run.environment)),
            run.outcome,
            run.seconds,
        )
        with self._transaction() as db:
            if _exists(db, run.id):
                raise ValueError(f"there is a run {run.id}")
            db.execute(
                "INSERT INTO runs (id, path, class_name, created_at, task, settings, environment, outcome, seconds)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def add_step(self, record: StepRecord) -> None:  # noqa: D102
        with self._transaction() as db:
            _require(db, record.run_id)
            (last,) = db.execute(
                "SELECT COALESCE(MAX(step), 0) FROM steps WHERE run_id = ?", (record.run_id,)
            ).fetchone()
            if record.step != last + 1:
                raise ValueError(f"step {record.step} of run {record.run_id} does not follow step {last}")
            try:
                db.execute(
                    "INSERT INTO steps (run_id, step, candidate_id, candidate, evaluation, seconds)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        record.run_id,
                        record.step,
                        record.candidate.id,
                        to_json(record.candidate),
                        to_json(record.evaluation),
                        record.seconds,
                    ),
                )
            except sqlite3.IntegrityError as error:
                raise ValueError(f"candidate {record.candidate.id} of run {record.run_id}: {error}") from error

    def finish_run(  # noqa: D102
        self, run_id: RunId, outcome: RunOutcome, seconds: float, best_step: int | None, final: Evaluation | None
    ) -> None:
        if outcome is RunOutcome.OPEN:
            raise ValueError("an open run is not finished")
        with self._transaction() as db:
            _require(db, run_id)
            try:
                db.execute(
                    "UPDATE runs SET outcome = ?, seconds = ?, best_step = ?, final = ? WHERE id = ?",
                    (outcome, seconds, best_step, _optional_json(final), run_id),
                )
            except sqlite3.IntegrityError as error:
                raise ValueError(f"run {run_id} has no step {best_step}") from error

    def reopen(self, run_id: RunId, steps: int | None = None) -> Run:  # noqa: D102
        with self._transaction() as db:
            _require(db, run_id)
            run = self._runs("WHERE id = ?", run_id)[0]
            settings = run.settings if steps is None else replace(run.settings, steps=steps)
            db.execute(
                "UPDATE runs SET outcome = ?, best_step = NULL, final = NULL, settings = ? WHERE id = ?",
                (RunOutcome.OPEN, to_json(settings), run_id),
            )
        return replace(run, settings=settings, outcome=RunOutcome.OPEN, best_step=None, final=None)

    def get_run(self, run_id: str) -> Run:  # noqa: D102
        with self._reading():
            exact = self._runs("WHERE id = ?", run_id)
            if exact:
                return exact[0]
            matches = self._runs("WHERE substr(id, 1, ?) = ?", len(run_id), run_id) if run_id else ()
        if len(matches) != 1:
            raise unknown_run(run_id, [run.id for run in matches])
        return matches[0]

    def list_runs(self) -> tuple[Run, ...]:  # noqa: D102
        with self._reading():
            return self._runs("ORDER BY created_at DESC, rowid DESC")

    def runs_for(self, path: str, class_name: str) -> tuple[Run, ...]:  # noqa: D102
        with self._reading():
            order = "ORDER BY created_at DESC, rowid DESC"
            return self._runs(f"WHERE path = ? AND class_name = ? {order}", path, class_name)

    def steps(self, run_id: RunId) -> tuple[StepRecord, ...]:  # noqa: D102
        with self._reading() as db:
            _require(db, run_id)
            rows = db.execute(
                "SELECT step, candidate, evaluation, seconds FROM steps WHERE run_id = ? ORDER BY step", (run_id,)
            ).fetchall()
        return tuple(
            StepRecord(run_id, step, from_json(candidate, Candidate), from_json(evaluation, Evaluation), seconds)
            for step, candidate, evaluation, seconds in rows
        )

    @contextmanager
    def lock_run(self, run_id: RunId) -> Iterator[None]:  # noqa: D102
        with ExitStack() as stack:
            try:
                stack.enter_context(exclusive_lock(self._lock_path(run_id)))
            except LockedError as error:
                raise RunLockedError(run_id=run_id, pid=error.pid or "unknown") from None
            except OSError as error:
                self._raise_unwritable(error)
            yield

    def run_is_active(self, run_id: RunId) -> bool:  # noqa: D102
        try:
            return is_locked(self._lock_path(run_id))
        except OSError as error:
            self._raise_unwritable(error)

    def close(self) -> None:  # noqa: D102
        with self._mutex:
            self._db.close()

    def _lock_path(self, run_id: RunId) -> Path:
        return self._locks / f"{run_id}.lock"

    def _connect(self) -> sqlite3.Connection:
        with self._faults():
            db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                self._set_up(db)
            except BaseException:
                db.close()
                raise
        return db

    def _set_up(self, db: sqlite3.Connection) -> None:
        scripts = migrations()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > len(scripts):
            raise SchemaVersionError(path=str(self._path), found=version, known=len(scripts))
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        for number, script in enumerate(scripts[version:], version + 1):
            with _in_transaction(db):
                for statement in _statements(script):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._mutex, self._faults(), _in_transaction(self._db):
            yield self._db

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._mutex, self._faults():
            yield self._db

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn what SQLite says of the disk into our errors."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            # Absent where the error is of Python's module: a store that was closed, for example.
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                raise StoreUnwritableError(path=str(self._path), reason=str(error), hint=_NOT_A_STORE_HINT) from error
            if isinstance(error, sqlite3.OperationalError):
                raise StoreUnwritableError(path=str(self._path), reason=str(error)) from error
            raise

    def _runs(self, clause: str, *values: object) -> tuple[Run, ...]:
        rows = self._db.execute(f"SELECT {_RUN_COLUMNS} FROM runs {clause}", values).fetchall()
        return tuple(_run(*row) for row in rows)

    def _raise_unwritable(self, error: OSError) -> NoReturn:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise StoreUnwritableError(path=str(self._path), reason=reason) from error


@contextmanager
def _in_transaction(db: sqlite3.Connection) -> Iterator[None]:
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite itself rolls back on a full disk
            db.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """Split a script after each complete statement; those of a trigger stay together."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not statement.strip(), statement


def _exists(db: sqlite3.Connection, run_id: RunId) -> bool:
    return db.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone() is not None


def _require(db: sqlite3.Connection, run_id: RunId) -> None:
    if not _exists(db, run_id):
        raise unknown_run(run_id, [])


def _optional_json(value: Evaluation | None) -> str | None:
    return None if value is None else to_json(value)


def _run(*row: Any) -> Run:
    run_id, task, settings, environment, created_at, outcome, seconds, best_step, final = row
    return Run(
        id=RunId(run_id),
        task=from_json(task, Task),
        settings=from_json(settings, RunSettings),
        environment=from_json(environment, Environment),
        created_at=created_at,
        outcome=RunOutcome(outcome),
        seconds=seconds,
        best_step=best_step,
        final=None if final is None else from_json(final, Evaluation),
    )
