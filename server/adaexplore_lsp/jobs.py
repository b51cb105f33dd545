"""Background searches: processes of their own that outlive this one; one at a time for each module."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import cattrs

from adaexplore.model.events import Event, RunFailed, RunFinished, RunStarted, StepEvaluated
from adaexplore.model.serialization import from_data
from adaexplore_lsp.settings import ServerSettings

POLL_SECONDS = 0.1
"""How often a search's events are read."""
GRACE_SECONDS = 2.0
"""What a cancelled search has to write down the best so far."""
EXIT_SECONDS = 10.0
"""What a finished search has to end."""
CHUNK_BYTES = 16 * 1024
"""Read at once; between two chunks other work has its turn."""
KEPT_LOGS = 100
"""Files of past searches that stay in the jobs folder."""

logger = logging.getLogger(__name__)

_EVENTS: dict[str, type[Any]] = {
    "run_started": RunStarted,
    "step_evaluated": StepEvaluated,
    "run_finished": RunFinished,
    "run_failed": RunFailed,
}


@dataclass(frozen=True, slots=True)
class Target:
    """What is searched for: one class of one file."""

    path: str
    """Absolute."""
    name: str


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a search is."""

    step: int = 0
    """Candidates evaluated; 0 also while the module is being captured."""
    steps: int = 0
    """Candidates in all; 0 as long as that is not known."""
    best_speedup: float | None = None
    """Over eager; None where nothing was measured yet."""
    shapes: str = ""
    workload: str = ""

    @property
    def percentage(self) -> int:
        """Whole per cent, 0 to 100."""
        return min(100, 100 * self.step // self.steps) if self.steps else 0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a search ended: by its own last event, or without one."""

    event: RunFinished | RunFailed | None
    cancelled: bool
    returncode: int | None
    log: Path
    """What the search wrote to standard error."""


class Report(Protocol):
    """Where a job tells of itself: any number of updates, then one end."""

    def update(self, state: JobState) -> None:
        """Show ``state``."""

    async def end(self, ending: Ending) -> None:
        """Show how it ended; called exactly once, whatever happens."""


@dataclass(slots=True)
class Job:
    """A search at work."""

    id: str
    target: Target
    report: Report
    process: asyncio.subprocess.Process
    events: Path
    log: Path
    state: JobState = JobState()
    cancelled: bool = False
    exited: asyncio.Task[int] = field(init=False)

    def __post_init__(self) -> None:
        self.exited = asyncio.create_task(self.process.wait())


class Jobs:
    """The searches that this server started and that are still at work."""

    def __init__(self, search_command: Sequence[str]) -> None:
        """Start nothing yet.

        Args:
            search_command: Program and first arguments; ``optimize FILE::NAME --json`` and options are added.
        """
        self._command = tuple(search_command)
        self._running: dict[Target, Job] = {}
        self._starting: dict[Target, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, target: Target) -> Job | None:
        """Give the search at work on ``target``."""
        return self._running.get(target)

    def running(self) -> list[Job]:
        """Give all searches at work."""
        return list(self._running.values())

    async def start(self, target: Target, settings: ServerSettings, make_report: Callable[[str], Report]) -> Job:
        """Start a search, or give the one that is at work on ``target``.

        Args:
            target: The class to search for; its file is read from disk by the search.
            settings: Options of the search, and the folder for its files.
            make_report: Given the job's id.

        Raises:
            OSError: The process or its files cannot be made.
        """
        async with self._starting.setdefault(target, asyncio.Lock()):
            running = self.find(target)
            if running is not None:
                return running
            job_id = uuid.uuid4().hex
            job = await self._spawn(job_id, target, settings, make_report)
            self._running[target] = job
        self._background(self._watch(job))
        return job

    def cancel(self, job: Job) -> None:
        """Ask a search to end, and end it where it does not; the report's end tells when it is over."""
        if job.cancelled or job.exited.done():
            return
        job.cancelled = True
        self._background(_end_process(job))

    def _background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _spawn(
        self, job_id: str, target: Target, settings: ServerSettings, make_report: Callable[[str], Report]
    ) -> Job:
        data_dir = settings.resolved_data_dir()
        folder = data_dir / "jobs"
        folder.mkdir(parents=True, exist_ok=True)
        _prune(folder)
        events, log = folder / f"{job_id}.jsonl", folder / f"{job_id}.log"
        environment = dict(os.environ)  # noqa: TID251 - handed on whole, to the process that reads it
        if settings.data_dir is not None:
            environment["ADAEXPLORE_DATA_DIR"] = str(settings.data_dir)
        # Files, not pipes: the search goes on after this process is gone, and must not die of a closed pipe.
        with events.open("wb") as stdout, log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *_arguments(target, settings),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                env=environment,
            )
        logger.info("job %s: process %d for %s::%s, log %s", job_id, process.pid, target.path, target.name, log)
        return Job(job_id, target, make_report(job_id), process, events, log)

    async def _watch(self, job: Job) -> None:
        event: RunFinished | RunFailed | None = None
        try:
            event = await _follow(job)
        except Exception:  # the fence of a job: its report ends whatever happens
            logger.exception("job %s", job.id)
        finally:
            self._running.pop(job.target, None)
            await job.report.end(Ending(event, job.cancelled, job.process.returncode, job.log))
        await _reap(job)


def _arguments(target: Target, settings: ServerSettings) -> Iterator[str]:
    yield from ("optimize", f"{target.path}::{target.name}", "--json")
    options = {
        "--steps": settings.steps,
        "--seconds": settings.seconds,
        "--policy": settings.policy,
        "--python": settings.python,
    }
    for option, value in options.items():
        if value is not None:
            yield from (option, f"{value:g}" if isinstance(value, float) else str(value))


async def _follow(job: Job) -> RunFinished | RunFailed | None:
    """Read events until the last one, or until the process is gone without it."""
    reader = EventReader(job.events)
    while True:
        gone = job.exited.done()  # asked before reading: what it wrote before it went is still read
        events = reader.read()
        for event in events:
            if isinstance(event, RunFinished | RunFailed):
                return event
            job.state = advance(job.state, event)
            job.report.update(job.state)
        if events:
            await asyncio.sleep(0)
        elif gone:
            return None
        else:
            await asyncio.wait([job.exited], timeout=POLL_SECONDS)


def advance(state: JobState, event: RunStarted | StepEvaluated) -> JobState:
    """Give the state after ``event``."""
    if isinstance(event, RunStarted):
        return replace(state, step=event.resumed_steps, steps=event.steps, shapes=event.shapes, workload=event.workload)
    best = event.best_speedup if event.best_speedup is not None else state.best_speedup
    return replace(state, step=event.step, steps=event.steps, best_speedup=best)


class EventReader:
    """The events of a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def read(self) -> list[Event]:
        """Give the events of whole lines that came since the last call; at most a chunk of them.

        An empty list means that nothing more is there now.
        """
        while True:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(CHUNK_BYTES)
            if not chunk:
                return []
            self._offset += len(chunk)
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            events = [event for event in map(parse_event, lines) if event is not None]
            if events:
                return events


def parse_event(line: bytes) -> Event | None:
    """Give the event of a line; None for a line that is none, which is logged."""
    if not line.strip():
        return None
    try:
        data = json.loads(line)
        event: Event = from_data(data, _EVENTS[data["event"]])
    except (ValueError, KeyError, TypeError, cattrs.BaseValidationError):
        logger.warning("not an event: %.200r", line)
        return None
    return event


async def _end_process(job: Job) -> None:
    _signal_group(job, signal.SIGINT)
    await asyncio.wait([job.exited], timeout=GRACE_SECONDS)
    if not job.exited.done():
        _signal_group(job, signal.SIGKILL)


async def _reap(job: Job) -> None:
    await asyncio.wait([job.exited], timeout=EXIT_SECONDS)
    if not job.exited.done():
        logger.warning("job %s does not end by itself: killed", job.id)
        _signal_group(job, signal.SIGKILL)


def _signal_group(job: Job, number: signal.Signals) -> None:
    # The group's id is the process's, which no other process can have before it was waited for.
    if job.process.returncode is None:
        try:
            os.killpg(job.process.pid, number)
        except ProcessLookupError:
            logger.info("job %s was over before %s", job.id, number.name)


def _prune(folder: Path) -> None:
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[KEPT_LOGS:]:
        path.unlink(missing_ok=True)
