"""Faults as people and machines are told of them: one sentence, a hint, never a traceback."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from adaexplore.cli.context import Context
from adaexplore.errors import AdaExploreError
from adaexplore.model.events import RunFailed
from adaexplore.model.serialization import to_json

DEFECT = 3
INTERRUPTED = 130
"""128 + SIGINT, as shells count."""
READER_GONE = 141
"""128 + SIGPIPE: `adaexplore … | head`."""


def tell_fault(error: AdaExploreError, as_json: bool) -> None:
    """Write the sentence and the hint to standard error, and the last event where events are wanted."""
    _tell(RunFailed(type(error).__name__, str(error), error.hint, error.exit_code), as_json)


def tell_defect(error: Exception, as_json: bool, context: Context) -> int:
    """Write one sentence about an error that is ours, and its traceback to a log file."""
    text = " ".join(str(error).split())
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    log = _write_log("".join(traceback.format_exception(error)), context)
    hint = f"The log is {log}; please report it." if log else "No log could be written; please report it."
    _tell(RunFailed(type(error).__name__, f"a defect of adaexplore: {reason}", hint, DEFECT), as_json)
    return DEFECT


def drop_output() -> None:
    """Let what is still buffered go nowhere, so that Python does not complain at its exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(event: RunFailed, as_json: bool) -> None:
    with suppress(OSError):  # nobody is there to be told
        sys.stderr.write(f"error: {event.message}\n")
        if event.hint:
            sys.stderr.write(f"hint: {event.hint}\n")
        sys.stderr.flush()
    if as_json:
        try:
            sys.stdout.write(to_json(event) + "\n")
            sys.stdout.flush()
        except OSError:
            drop_output()


def _write_log(text: str, context: Context) -> Path | None:
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.log"
    with suppress(Exception):  # the data directory may be what is at fault
        return _write(context.load_settings(None).data_dir / "logs" / name, text)
    with suppress(OSError):
        return _write(Path(tempfile.gettempdir()) / f"adaexplore-{name}", text)
    return None


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
