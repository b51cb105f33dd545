"""The course of a run: what happens in which order, how it stops, and how it goes on.

The task is captured once by a real worker; candidates are the builtin proposer's; verdicts are made up, so that a run
takes no time.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.core.workshop import FIXTURES, capture_file, make_settings

from adaexplore import optimize as module
from adaexplore.errors import (
    ConfigurationError,
    RunLockedError,
    UnsupportedOperatorError,
    UsageError,
    WorkerError,
    WorkerStartError,
)
from adaexplore.executors.local import LocalExecutor
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Correctness, Evaluation, EvaluationStatus, Measurement, Timing
from adaexplore.model.events import Event, RunFinished, RunStarted, StepEvaluated
from adaexplore.model.run import RunId, RunOutcome, StepRecord
from adaexplore.model.task import Environment, Policy, Task
from adaexplore.optimize import Request, optimize, resume
from adaexplore.store.in_memory import InMemoryStore
from adaexplore.worker.client import Stopped

pytestmark = pytest.mark.slow

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


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    executor = LocalExecutor(make_settings(tmp_path_factory.mktemp("data")), threading.Event())
    try:
        return capture_file(executor, SOFTMAX)
    finally:
        executor.close()


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


@pytest.fixture
def bench(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    path = tmp_path / "softmax_temperature.py"
    path.write_text(SOFTMAX.read_text())
    script = Script()
    executor = type("Scripted", (FakeExecutor,), {"script": script})

    def capture(subject: Any, worker: Any, seconds: float) -> tuple[Task, bool]:
        script.phase("capture")
        return module.replace(task, path=str(path)), False

    monkeypatch.setattr(module, "LocalExecutor", executor)
    monkeypatch.setattr(module, "capture", capture)
    return Bench(script, path, tmp_path)


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


# -- the order of things


def test_all_is_stored_before_it_is_told(bench: Bench) -> None:
    list(bench.optimize(steps=3))
    assert bench.store.entries == [
        "stored run", "told run_started",
        "stored step 1", "told step 1", "stored step 2", "told step 2", "stored step 3", "told step 3",
        "stored verified", "told run_finished",
    ]  # fmt: skip
    assert bench.script.calls[-1] == "close"


def test_events_say_what_the_store_holds(bench: Bench, task: Task) -> None:
    bench.script.verdict = lambda n, _: PASSED if n > 1 else WRONG
    events = list(bench.optimize(steps=3))
    (run,) = bench.store.list_runs()
    records = bench.store.steps(run.id)
    started = events[0]
    assert isinstance(started, RunStarted)
    assert (started.run_id, started.shapes, started.steps) == (run.id, task.shapes, 3)
    steps = [e for e in events if isinstance(e, StepEvaluated)]
    assert [(e.step, e.candidate_id, e.status, e.detail) for e in steps] == [
        (r.step, r.candidate.id, r.evaluation.status, r.evaluation.detail) for r in records
    ]
    assert [e.best_candidate_id for e in steps] == [None, records[1].candidate.id, records[1].candidate.id]
    end = finished(events)
    assert (end.outcome, end.best, end.steps) == (RunOutcome.VERIFIED, records[1].candidate, 3)
    assert (run.outcome, run.best_step) == (RunOutcome.VERIFIED, 2)


def test_the_run_is_locked_while_it_lasts_and_free_after(bench: Bench) -> None:
    events = bench.optimize()
    started = next(events)
    assert isinstance(started, RunStarted)
    assert bench.store.run_is_active(RunId(started.run_id))
    with pytest.raises(RunLockedError):
        next(bench.resume(started.run_id))
    list(events)
    assert not bench.store.run_is_active(RunId(started.run_id))


def test_leaving_the_events_ends_the_workers_and_frees_the_run(bench: Bench) -> None:
    source = optimize(Request(bench.path, None, Policy.STRICT, steps=4), bench.settings, bench.store, bench.stop)
    started = next(source)
    next(source)
    source.close()  # type: ignore[attr-defined]
    assert bench.script.calls[-1] == "close"
    assert isinstance(started, RunStarted)
    assert not bench.store.run_is_active(RunId(started.run_id))
    assert bench.store.get_run(started.run_id).outcome is RunOutcome.OPEN


# -- stopping


@pytest.mark.parametrize("phase", ["hello", "capture", "open"])
def test_a_stop_before_the_run_began_leaves_nothing(bench: Bench, phase: str) -> None:
    stop_on(bench, phase)
    assert list(bench.optimize()) == []
    assert bench.store.list_runs() == ()
    assert bench.script.calls[-1] == "close"


@pytest.mark.parametrize(("count", "kept"), [(1, 0), (3, 2)])
def test_a_stop_in_an_evaluation_keeps_the_best_so_far(bench: Bench, count: int, kept: int) -> None:
    stop_on(bench, "evaluate", count)
    end = finished(list(bench.optimize()))
    assert (end.outcome, end.steps) == (RunOutcome.CANCELLED, kept)
    assert (end.best is not None) == (kept > 0)
    assert ("nothing had passed yet" in end.message) == (kept == 0)
    (run,) = bench.store.list_runs()
    assert (run.outcome, len(bench.store.steps(run.id))) == (RunOutcome.CANCELLED, kept)


def test_a_stop_between_steps(bench: Bench) -> None:
    events = []
    for event in bench.optimize():
        events.append(event)
        if isinstance(event, StepEvaluated) and event.step == 2:
            bench.stop.set()
    assert (finished(events).outcome, finished(events).steps) == (RunOutcome.CANCELLED, 2)


def test_a_stop_in_the_confirmation(bench: Bench) -> None:
    bench.script.environment, bench.script.verdict = GPU, lambda n, _: measured(0.5)
    stop_on(bench, "confirm")
    end = finished(list(bench.optimize(steps=2)))
    assert end.outcome == RunOutcome.CANCELLED
    assert end.best is not None


# -- budgets


def test_steps_seconds_and_defaults(bench: Bench) -> None:
    bench.script.on["evaluate"] = lambda: bench.stop.wait(0.1) and None
    end = finished(list(bench.optimize(steps=50, seconds=0.25)))
    assert 2 <= end.steps <= 4
    assert 0.25 <= end.seconds < 2.0
    assert bench.script.targets == ["cuda:90"]


@pytest.mark.parametrize(("environment", "steps"), [(CPU, 3), (GPU, 30)])
def test_without_a_number_of_steps_the_machine_decides(bench: Bench, environment: Environment, steps: int) -> None:
    bench.script.environment = environment
    started = next(bench.optimize(steps=None))
    assert isinstance(started, RunStarted)
    assert started.steps == steps


def test_no_step_at_all(bench: Bench) -> None:
    end = finished(list(bench.optimize(steps=0)))
    assert (end.outcome, end.message) == (
        RunOutcome.FAILED,
        "none of 0 candidates passed; the last: there was nothing to try",
    )


def test_the_run_ends_when_nothing_is_left_to_try(bench: Bench) -> None:
    end = finished(list(bench.optimize(steps=100_000)))
    assert 4 < end.steps < 100_000
    assert len(set(bench.candidates())) == end.steps


def test_the_target_is_the_requests(bench: Bench) -> None:
    list(bench.optimize(steps=1, target="cuda:80"))
    (run,) = bench.store.list_runs()
    list(bench.resume(run.id, steps=2))
    assert bench.script.targets == ["cuda:80", "cuda:80"]


# -- outcomes


def test_none_passed_tells_the_last_reason(bench: Bench) -> None:
    bench.script.verdict = lambda n, _: WRONG
    end = finished(list(bench.optimize(steps=2)))
    assert (end.outcome, end.best) == (RunOutcome.FAILED, None)
    assert end.message.endswith("the last: inputs 'as given': wrong")


def test_the_fastest_is_confirmed_and_its_fresh_numbers_are_told(bench: Bench) -> None:
    bench.script.environment = GPU
    latencies = {1: 0.7, 2: 0.4, 3: 0.6, 4: 0.9}
    bench.script.verdict = lambda n, _: measured(latencies[n])
    bench.script.confirmation = lambda _: measured(0.5)
    end = finished(list(bench.optimize()))
    assert end.outcome == RunOutcome.IMPROVED
    assert end.message == "2.00x faster than eager, 1.60x than torch.compile"
    assert end.best is not None
    assert end.best.id == bench.candidates()[1]
    assert end.evaluation == measured(0.5)
    assert bench.script.calls.count("confirm") == 1
    (run,) = bench.store.list_runs()
    assert (run.best_step, run.final) == (2, measured(0.5))


def test_what_does_not_keep_its_speedup_gives_way(bench: Bench) -> None:
    bench.script.environment = GPU
    latencies = {1: 0.4, 2: 0.5, 3: 0.6, 4: 0.7}
    bench.script.verdict = lambda n, _: measured(latencies[n], compiled_ms=None)
    answers = iter([measured(1.2), WRONG, measured(0.65, compiled_ms=None)])
    bench.script.confirmation = lambda _: next(answers)
    end = finished(list(bench.optimize()))
    assert (end.outcome, end.message) == (RunOutcome.IMPROVED, "1.54x faster than eager")
    assert end.best is not None
    assert end.best.id == bench.candidates()[2]


@pytest.mark.parametrize("confirmed", [measured(1.0), measured(1.015), WRONG])
def test_nothing_better_after_three_tries(bench: Bench, confirmed: Evaluation) -> None:
    bench.script.environment = GPU
    bench.script.verdict = lambda n, _: measured(0.5)
    bench.script.confirmation = lambda _: confirmed
    end = finished(list(bench.optimize()))
    assert end.outcome == RunOutcome.NOTHING_BETTER
    assert bench.script.calls.count("confirm") == 3


# -- going on


def test_a_resumed_run_is_the_uninterrupted_one(bench: Bench) -> None:
    verdicts: dict[str, Evaluation] = {}
    bench.script.environment = GPU

    def verdict(_: int, candidate: Candidate) -> Evaluation:
        return verdicts.setdefault(candidate.id, measured(0.3 + int(candidate.id[:4], 16) / 65536))

    bench.script.verdict, bench.script.confirmation = verdict, lambda _: measured(0.5)
    list(bench.optimize(steps=12, seed=7))
    whole, bench.store = bench.candidates(), Journal()
    for step, event in enumerate(bench.optimize(steps=12, seed=7)):
        if step == 5:
            assert isinstance(event, StepEvaluated)
            bench.stop.set()
    bench.stop.clear()
    (run,) = bench.store.list_runs()
    assert run.outcome is RunOutcome.CANCELLED
    events = list(bench.resume(run.id))
    assert isinstance(events[0], RunStarted)
    assert events[0].resumed_steps == 5
    assert bench.candidates() == whole


def test_more_steps_for_a_finished_run(bench: Bench) -> None:
    list(bench.optimize(steps=2))
    (run,) = bench.store.list_runs()
    spent = run.seconds
    assert finished(list(bench.resume(run.id))).steps == 2  # nothing to do, the same outcome
    end = finished(list(bench.resume(run.id[:6], steps=5)))
    assert (end.steps, len(bench.candidates()), len(set(bench.candidates()))) == (5, 5, 5)
    assert end.seconds >= spent


def edit(old: str, new: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(path.read_text().replace(old, new)) and None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (edit("dim=-1", "dim=0"), "has changed since the run began"),
        (edit("class SoftmaxTemperature", "class Renamed"), "Renamed"),
        (edit("return torch", "return (torch"), "does not parse"),
        (lambda path: path.unlink(), "no such file"),
    ],
)
def test_a_changed_source_is_not_resumed(bench: Bench, change: Callable[[Path], None], reason: str) -> None:
    list(bench.optimize(steps=1))
    (run,) = bench.store.list_runs()
    change(bench.path)
    with pytest.raises(UsageError) as caught:
        list(bench.resume(run.id, steps=2))
    assert reason in f"{caught.value} {caught.value.hint}"
    assert bench.store.get_run(run.id) == run


def test_comments_and_other_classes_may_change(bench: Bench) -> None:
    list(bench.optimize(steps=1))
    (run,) = bench.store.list_runs()
    bench.path.write_text("# moved down\n\n" + bench.path.read_text() + "\n\nclass Other: ...\n")
    assert finished(list(bench.resume(run.id, steps=2))).steps == 2


def test_another_gpu_is_not_resumed_on(bench: Bench) -> None:
    list(bench.optimize(steps=1))
    (run,) = bench.store.list_runs()
    bench.script.environment = GPU
    with pytest.raises(UsageError, match="was made with no GPU, here is NVIDIA H200"):
        list(bench.resume(run.id, steps=2))
    assert bench.store.get_run(run.id) == run


def test_a_fault_of_the_machine_leaves_a_run_to_resume(bench: Bench) -> None:
    def fail() -> None:
        if bench.script.calls.count("evaluate") == 3:
            raise WorkerError(reason="the disk is gone")

    bench.script.on["evaluate"] = fail
    with pytest.raises(WorkerError, match="the disk is gone"):
        list(bench.optimize())
    (run,) = bench.store.list_runs()
    assert (run.outcome, len(bench.candidates())) == (RunOutcome.OPEN, 2)
    assert bench.script.calls[-1] == "close"
    assert finished(list(bench.resume(run.id))).steps == 4


# -- what never begins


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("class M: ...\n", UsageError, ""),
        ("import torch\nclass M(torch.nn.Module):\n    def forward(self, x): return x\n", UsageError, "no workload"),
        ("class M(:\n", UsageError, "does not parse"),
        (
            "import torch\n# adaexplore: forwards(x=f32[2])\n"
            "class M(torch.nn.Module):\n    def forward(self, x): return x\n",
            ConfigurationError,
            "",
        ),
    ],
)
def test_wrong_use_starts_no_worker(bench: Bench, text: str, kind: type[Exception], reason: str) -> None:
    bench.path.write_text(text)
    with pytest.raises(kind) as caught:
        list(bench.optimize())
    assert reason in str(caught.value)
    assert bench.script.calls == []


def test_a_file_that_is_not_text_or_not_there(bench: Bench) -> None:
    bench.path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        list(bench.optimize())
    bench.path.unlink()
    with pytest.raises(UsageError, match="no such file"):
        list(bench.optimize())
    bench.path.mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        list(bench.optimize())


def real(path: Path, tmp_path: Path, **options: Any) -> None:
    settings = make_settings(tmp_path, python=options.pop("python", make_settings(tmp_path).python))
    store = InMemoryStore()
    try:
        list(optimize(Request(path, None, Policy.STRICT, **options), settings, store, threading.Event()))
    finally:
        assert store.list_runs() == ()


def test_a_module_without_a_kernel_family_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError) as caught:
        real(FIXTURES / "modules" / "unsupported_conv.py", tmp_path)
    assert "convolution" in str(caught.value.details["operator"])
    assert isinstance(caught.value.details["line"], int)


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WorkerStartError):
        real(SOFTMAX, tmp_path, python="/nowhere/python")


def test_an_unknown_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown target 'cuda:75'; known are cuda:80"):
        real(SOFTMAX, tmp_path, target="cuda:75")
