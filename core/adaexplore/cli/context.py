"""What commands work with, so that a test can give them something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adaexplore.config import Settings, load_settings
from adaexplore.model.events import Event
from adaexplore.store.store import Store

if TYPE_CHECKING:  # heavy: a command that needs no search does without
    from adaexplore.optimize import Request


@dataclass(frozen=True, slots=True)
class Context:
    """The engine, the settings and the store."""

    optimize: Callable[[Request, Settings, Store, threading.Event], Iterator[Event]]
    resume: Callable[[str, Settings, Store, threading.Event, int | None, float | None], Iterator[Event]]
    """Run, settings, store, stop, and new limits in steps and seconds."""
    load_settings: Callable[[str | None], Settings]
    """Given the interpreter that the user named."""
    open_store: Callable[[Path], Store]
    """Given the data directory."""


def default_context() -> Context:
    """Give the real thing."""
    return Context(_optimize, _resume, lambda python: load_settings(python=python), _open_store)


def _optimize(request: Request, settings: Settings, store: Store, stop: threading.Event) -> Iterator[Event]:
    from adaexplore.optimize import optimize

    return optimize(request, settings, store, stop)


def _resume(  # noqa: PLR0913 - as the engine's
    run_id: str, settings: Settings, store: Store, stop: threading.Event, steps: int | None, seconds: float | None
) -> Iterator[Event]:
    from adaexplore.optimize import resume

    return resume(run_id, settings, store, stop, steps, seconds)


def _open_store(data_dir: Path) -> Store:
    from adaexplore.store.sqlite import SqliteStore

    return SqliteStore(data_dir)
