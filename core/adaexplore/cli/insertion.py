"""A run's best kernel into the user's files: the sidecar first, then the one line, each in one piece."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from adaexplore.capture.locate import class_source
from adaexplore.cli.source import UserModule, find_module
from adaexplore.errors import AdaExploreError, UsageError
from adaexplore.model.identity import source_hash
from adaexplore.model.run import Run, RunOutcome, StepRecord
from adaexplore.replacement.insert import apply_edit, plan_insertion
from adaexplore.replacement.sidecar import sidecar_path, take_section
from adaexplore.store.store import Store


@dataclass(frozen=True, slots=True)
class Inserted:
    """What was written."""

    path: Path
    line: int
    """1-based: where the decorator stands."""
    sidecar: Path

    @property
    def sentence(self) -> str:
        """Say it, and how to undo it."""
        return (
            f"Inserted: {self.sidecar}, and line {self.line} of {self.path}. "
            "To undo, delete the line, or choose Revert to PyTorch in the editor."
        )


def check_insertable(user_module: UserModule) -> None:
    """Find out before a long search what would be in the way after it.

    Raises:
        UsageError: The sidecar is not ours or was edited.
        AdaExploreError: The files cannot be written.
    """
    path = user_module.path
    existing = _read_sidecar(sidecar_path(path))
    if existing is not None:
        take_section(existing, user_module.module.name, path)
    for place in {Path(os.path.realpath(path)).parent, path.parent}:
        if not os.access(place, os.W_OK | os.X_OK):
            raise _unwritable(path, f"the folder {place} does not take new files")


def insert_best(store: Store, run_id: str) -> Inserted:
    """Insert the best candidate of a run.

    Raises:
        UsageError: The run has nothing to insert, or the class has changed since.
        AdaExploreError: The files cannot be written; they are as before.
    """
    from adaexplore.replacement.section import render_section

    run = store.get_run(run_id)
    record = best_record(run, store)
    user_module = find_module(Path(run.task.path), run.task.class_name)
    path, source, module = user_module.path, user_module.source, user_module.module
    if source_hash(class_source(source, module)) != run.task.source_hash:
        reason = f"{path}:{module.class_line}: {module.name} has changed since run {run.id}, so its kernel may not fit"
        raise UsageError(reason=reason, hint="Run `adaexplore optimize` again.")
    section = render_section(run, record, run.final)
    sidecar = sidecar_path(path)
    existing = _read_sidecar(sidecar)
    plan = plan_insertion(source, path, module, section, existing)
    _write(plan.sidecar_path, plan.sidecar_text)
    try:
        _write(path, apply_edit(source, plan.edit))
    except AdaExploreError:
        _restore(plan.sidecar_path, existing)
        raise
    return Inserted(path, plan.edit.first_line, plan.sidecar_path)


def best_record(run: Run, store: Store) -> StepRecord:
    """Give the best step of a run that is over.

    Raises:
        UsageError: It is not over, nothing passed, or the best is no faster than eager.
    """
    from adaexplore.optimize import is_faster

    if run.outcome is RunOutcome.OPEN:
        reason, hint = f"run {run.id} is not finished", f"Finish it with `adaexplore runs resume {run.id}`."
        raise UsageError(reason=reason, hint=hint)
    if run.best_step is None:
        reason, hint = f"run {run.id} has no kernel to insert", f"See `adaexplore runs show {run.id}`."
        raise UsageError(reason=reason, hint=hint)
    record = store.steps(run.id)[run.best_step - 1]
    evaluation = run.final or record.evaluation
    slow = evaluation.measurement is not None and not is_faster(evaluation)
    if slow or run.outcome is RunOutcome.NOTHING_BETTER:
        reason = f"the best kernel of run {run.id} is no faster than eager, beyond the spread"
        raise UsageError(reason=reason, hint="Leave the module as it is.")
    return record


def _read_sidecar(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unwritable(path, error.strerror or "it cannot be read") from error
    except UnicodeDecodeError as error:
        reason = f"{path} was not written by adaexplore, and is left as it is"
        raise UsageError(reason=reason, hint="Move or rename it, and try again.") from error


def _write(path: Path, text: str) -> None:
    """Replace a file by one step, so that nobody ever sees half of it; its mode stays, and a link stays a link."""
    target = Path(os.path.realpath(path))
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, mode)
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _restore(path: Path, text: str | None) -> None:
    with suppress(OSError, AdaExploreError):
        if text is None:
            path.unlink()
        else:
            _write(path, text)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _unwritable(path: Path, reason: str) -> AdaExploreError:
    return AdaExploreError(reason=f"cannot write {path}: {reason}", hint="Make it writable, and try again.")
