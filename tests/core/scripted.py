"""Runs whose verdicts are made up, so that they take no time: an executor that follows a script, a store that notes."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.core.workshop import FIXTURES, make_settings

from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Correctness, Evaluation, EvaluationStatus, Measurement, Timing
from adaexplore.model.events import Event, RunFinished, StepEvaluated
from adaexplore.model.run import RunId, RunOutcome, StepRecord
from adaexplore.model.task import Environment, Policy
from adaexplore.optimize import Request, optimize, resume
from adaexplore.store.in_memory import InMemoryStore
from adaexplore.worker.client import Stopped

CPU = Environment("3.11", "2.13", "3.6")
GPU = Environment("3.11", "2.13", "3.6", "12.8", "NVIDIA H200", "570", "9.0", 132)
CORRECT = Correctness("interpreter", 8, 1e-7, 1e-6, 1e-7, 1e-6)
PASSED = Evaluation(EvaluationStatus.PASSED, "measure", "not measured: no GPU", CORRECT, environment=CPU)
WRONG = Evaluation(EvaluationStatus.INCORRECT, "compare", "inputs 'as given': wrong")
SOFTMAX = FIXTURES / "modules" / "softmax_temperature.py"


def measured(candidate_ms: float, eager_ms: float = 1.0, compiled_ms: float | None = 0.8) -> Evaluation:
    def timing(ms: float) -> Timing:
        return Timing(ms, ms * 0.99, ms * 1.01, 100)

    compiled = None if compiled_ms is None else timing(compiled_ms)
    measurement = Measurement(timing(candidate_ms), timing(eager_ms), compiled)
    return Evaluation(EvaluationStatus.PASSED, "measure", "", CORRECT, measurement=measurement, environment=GPU)


@dataclass
class Script:
    """What the made-up executor does, and what was asked of it."""

    environment: Environment = CPU
    verdict: Callable[[int, Candidate], Evaluation] = lambda n, _: PASSED
    confirmation: Callable[[Candidate], Evaluation] = lambda _: PASSED
    on: dict[str, Callable[[], None]] = field(default_factory=dict)
    """By phase: ``hello``, ``open``, ``evaluate``, ``confirm``."""
    calls: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)

    def phase(self, name: str) -> None:
        self.calls.append(name)
        self.on.get(name, lambda: None)()


class FakeExecutor:
    script: Script

    def __init__(self, settings: Any, stop: threading.Event) -> None:
        self.main = self
        self.n = 0
        self.script.targets.append(settings.target)

    def hello(self) -> Environment:
        self.script.phase("hello")
        return self.script.environment

    def open(self, *_: Any) -> dict[str, Any]:
        self.script.phase("open")
        return {"ok": True, "allow_tf32": False}

    def evaluate(self, candidate: Candidate) -> Evaluation:
        self.script.phase("evaluate")
        self.n += 1
        return self.script.verdict(self.n, candidate)

    def confirm(self, candidate: Candidate) -> Evaluation:
        self.script.phase("confirm")
        return self.script.confirmation(candidate)

    def close(self) -> None:
        self.script.calls.append("close")


class Journal(InMemoryStore):
    """Notes what is written, beside the events that are seen."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[str] = []

    def create_run(self, run: Any) -> None:
        super().create_run(run)
        self.entries.append("stored run")

    def add_step(self, record: StepRecord) -> None:
        super().add_step(record)
        self.entries.append(f"stored step {record.step}")

    def finish_run(self, run_id: RunId, outcome: RunOutcome, *rest: Any) -> None:
        super().finish_run(run_id, outcome, *rest)
        self.entries.append(f"stored {outcome}")

    def seen(self, event: Event) -> None:
        if isinstance(event, StepEvaluated):
            self.entries.append(f"told step {event.step}")
        else:
            self.entries.append(f"told {event.event}")


class Bench:
    """Runs against the script."""

    def __init__(self, script: Script, path: Path, data: Path) -> None:
        self.script, self.path, self.settings = script, path, make_settings(data)
        self.store, self.stop = Journal(), threading.Event()

    def optimize(self, **options: Any) -> Iterator[Event]:
        request = Request(self.path, None, Policy.STRICT, **({"steps": 4} | options))
        return self._noted(optimize(request, self.settings, self.store, self.stop))

    def resume(self, run_id: str, **options: Any) -> Iterator[Event]:
        return self._noted(resume(run_id, self.settings, self.store, self.stop, **options))

    def _noted(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            self.store.seen(event)
            yield event

    def candidates(self) -> list[str]:
        (run,) = self.store.list_runs()
        return [s.candidate.id for s in self.store.steps(run.id)]


def finished(events: list[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished)
    return events[-1]


def stop_on(bench: Bench, phase: str, count: int = 1) -> None:
    """Set the stop event in the given call of a phase, as a signal would; the worker's client then raises."""
    left = [count]

    def stop() -> None:
        left[0] -= 1
        if left[0] == 0:
            bench.stop.set()
            raise Stopped

    bench.script.on[phase] = stop
