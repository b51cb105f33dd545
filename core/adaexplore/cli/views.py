"""How a search is shown while it runs: JSON lines, plain lines, or a progress bar."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from adaexplore.cli.wording import environment, milliseconds, times
from adaexplore.model.events import Event, RunStarted, StepEvaluated
from adaexplore.model.serialization import to_json

if TYPE_CHECKING:
    from rich.console import Console

STOPPING = "stopping; keeping the best so far (again to end at once)"
_STDERR = 2
_SHOW_CURSOR = b"\x1b[?25h\n"


class View(Protocol):
    """Shows events. ``stopping`` and ``abandon`` are called from a signal handler, at any moment."""

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; the terminal is as before."""

    def show(self, event: Event) -> None:
        """Show one event."""

    def stopping(self) -> None:
        """Say that the search was asked to end."""

    def abandon(self) -> None:
        """Leave the terminal usable: the process ends now."""


def make_view(as_json: bool) -> View:
    """Give the view that fits standard output."""
    if as_json:
        return JsonView()
    if not sys.stdout.isatty():
        return PlainView()
    from adaexplore.cli.terminal import make_console

    console = make_console()
    return PlainView() if console.is_dumb_terminal else ProgressView(console)


class _Lines:
    """What the views without a progress bar have in common."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stopping(self) -> None:
        # Not through sys.stderr: the signal may have come while that was being written.
        with suppress(OSError):
            os.write(_STDERR, f"{STOPPING}\n".encode())

    def abandon(self) -> None:
        pass


class JsonView(_Lines):
    """One JSON object a line, written at once."""

    def show(self, event: Event) -> None:  # noqa: D102 - the Protocol documents it
        sys.stdout.write(to_json(event) + "\n")
        sys.stdout.flush()


class PlainView(_Lines):
    """One line an event, for logs and pipes."""

    def show(self, event: Event) -> None:  # noqa: D102
        if isinstance(event, RunStarted):
            text = started_line(event)
        elif isinstance(event, StepEvaluated):
            text = step_line(event)
        else:
            return  # the report tells the end
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


class ProgressView:
    """A progress bar with the best speedup so far and the candidate at hand."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[best]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("starting a worker and capturing the module", total=None, best="")
        self._best: str | None = None
        self._stopping = False

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, event: Event) -> None:  # noqa: D102
        if isinstance(event, RunStarted):
            self._console.print(started_line(event), soft_wrap=True)
            self._update(event.steps, event.resumed_steps, "the first candidate")
        elif isinstance(event, StepEvaluated):
            if event.best_candidate_id != self._best:
                self._best = event.best_candidate_id
                self._console.print(step_line(event), soft_wrap=True)
            if event.best_speedup is not None:
                self._progress.update(self._task, best=f"best {times(event.best_speedup)}")
            self._update(event.steps, event.step, f"{event.status.replace('_', ' ')}: {event.summary}")

    def stopping(self) -> None:  # noqa: D102
        self._stopping = True
        self._progress.update(self._task, description=STOPPING)

    def abandon(self) -> None:  # noqa: D102
        with suppress(OSError):
            os.write(_STDERR, _SHOW_CURSOR)

    def _update(self, total: int, completed: int, description: str) -> None:
        text = STOPPING if self._stopping else description
        self._progress.update(self._task, total=total, completed=completed, description=text)


def started_line(event: RunStarted) -> str:
    """Say what is optimized, on what, and where."""
    going_on = f", going on after step {event.resumed_steps}" if event.resumed_steps else ""
    return (
        f"{event.class_name}, {event.operators} operators, {event.shapes}; policy {event.policy}; "
        f"{environment(event.environment)}; run {event.run_id}{going_on}"
    )


def step_line(event: StepEvaluated) -> str:
    """Say what came of one candidate."""
    parts = [f"step {event.step}/{event.steps}", event.kind.value, event.status.replace("_", " ")]
    if event.latency_ms is not None:
        parts.append(milliseconds(event.latency_ms))
    if event.speedup is not None:
        parts.append(times(event.speedup))
    if event.best_speedup is not None:
        parts.append(f"(best {times(event.best_speedup)})")
    line = f"{'  '.join(parts)}  {event.summary}".rstrip()
    return f"{line}: {event.detail}" if event.detail and event.status != "passed" else line
