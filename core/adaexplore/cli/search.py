"""A search from the command line: its events shown, its signals heeded, its ending told."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType

from adaexplore.cli.faults import INTERRUPTED
from adaexplore.cli.insertion import insert_best
from adaexplore.cli.views import View, make_view
from adaexplore.errors import CaptureError
from adaexplore.model.events import Event, RunFinished, RunStarted
from adaexplore.model.run import RunOutcome
from adaexplore.store.store import Store

_INSERTABLE = (RunOutcome.IMPROVED, RunOutcome.VERIFIED)


@dataclass(frozen=True, slots=True)
class Ending:
    """A search that is over."""

    started: RunStarted
    finished: RunFinished


def watch(start: Callable[[threading.Event], Iterator[Event]], as_json: bool) -> Ending:
    """Run a search to its end and show its events as they happen.

    The first SIGINT or SIGTERM asks it to end and keep its best; the second ends this process at once, and with it
    the workers, which die with their parent.

    Args:
        start: Gives the events; the argument asks the search to end when set.
        as_json: Events as JSON lines instead of for people.

    Raises:
        CaptureError: It was asked to end before there was anything to search for.
    """
    stop = threading.Event()
    started: RunStarted | None = None
    finished: RunFinished | None = None
    with ExitStack() as stack:
        view = stack.enter_context(make_view(as_json))
        stack.enter_context(_heeding_signals(stop, view))
        events = start(stop)
        stack.callback(getattr(events, "close", lambda: None))  # a fault of the view ends the search, too
        for event in events:
            view.show(event)
            if isinstance(event, RunStarted):
                started = event
            elif isinstance(event, RunFinished):
                finished = event
    if started is None or finished is None:
        assert stop.is_set(), "a search that is not stopped ends with RunFinished or an error"
        raise CaptureError(reason="stopped before the module was captured; there is nothing to keep")
    return Ending(started, finished)


def finish(ending: Ending, store: Store, as_json: bool, insert: bool) -> int:
    """Show the report, insert the kernel if asked to, and give the exit code."""
    outcome = RunOutcome(ending.finished.outcome)
    good = outcome in _INSERTABLE
    if not as_json:
        from adaexplore.cli.report import show_report

        show_report(ending.started, ending.finished, is_inserted=insert)
    if insert:
        # Standard output is the events' alone.
        out = sys.stderr if as_json else sys.stdout
        if good:
            out.write(insert_best(store, ending.finished.run_id).sentence + "\n")
        else:
            out.write(f"Nothing was inserted: the outcome is {outcome.value.replace('_', ' ')}.\n")
        out.flush()
    return exit_code(ending.finished)


def exit_code(finished: RunFinished) -> int:
    """Give 0 for a search that found something, else 1."""
    outcome = RunOutcome(finished.outcome)
    found = outcome in _INSERTABLE or (outcome is RunOutcome.CANCELLED and finished.best is not None)
    return 0 if found else 1


@contextmanager
def _heeding_signals(stop: threading.Event, view: View) -> Iterator[None]:
    def heed(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            view.abandon()
            os._exit(INTERRUPTED)
        stop.set()
        view.stopping()

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, and only it gets signals
        return
    before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
