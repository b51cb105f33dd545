"""The course of a run: what happens in which order, how it stops, and what never begins.

The task is captured once by a real worker; candidates are the builtin proposer's; verdicts are made up, so that a run
takes no time.
"""

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.core.scripted import CPU, GPU, PASSED, SOFTMAX, WRONG, Bench, finished, measured, stop_on
from tests.core.workshop import FIXTURES, make_settings

from adaexplore.errors import (
    ConfigurationError,
    RunLockedError,
    UnsupportedOperatorError,
    UsageError,
    WorkerStartError,
)
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.events import RunStarted, StepEvaluated
from adaexplore.model.run import RunId, RunOutcome
from adaexplore.model.task import Environment, Policy, Task
from adaexplore.optimize import Request, optimize
from adaexplore.store.in_memory import InMemoryStore

pytestmark = pytest.mark.slow


# -- the order of things


def test_all_is_stored_before_it_is_told(scripted: Bench) -> None:
    list(scripted.optimize(steps=3))
    assert scripted.store.entries == [
        "stored run", "told run_started",
        "stored step 1", "told step 1", "stored step 2", "told step 2", "stored step 3", "told step 3",
        "stored verified", "told run_finished",
    ]  # fmt: skip
    assert scripted.script.calls[-1] == "close"


def test_events_say_what_the_store_holds(scripted: Bench, softmax_task: Task) -> None:
    scripted.script.verdict = lambda n, _: PASSED if n > 1 else WRONG
    events = list(scripted.optimize(steps=3))
    (run,) = scripted.store.list_runs()
    records = scripted.store.steps(run.id)
    started = events[0]
    assert isinstance(started, RunStarted)
    assert (started.run_id, started.shapes, started.steps) == (run.id, softmax_task.shapes, 3)
    steps = [e for e in events if isinstance(e, StepEvaluated)]
    assert [(e.step, e.candidate_id, e.status, e.detail) for e in steps] == [
        (r.step, r.candidate.id, r.evaluation.status, r.evaluation.detail) for r in records
    ]
    assert [e.best_candidate_id for e in steps] == [None, records[1].candidate.id, records[1].candidate.id]
    end = finished(events)
    assert (end.outcome, end.best, end.steps) == (RunOutcome.VERIFIED, records[1].candidate, 3)
    assert (run.outcome, run.best_step) == (RunOutcome.VERIFIED, 2)


def test_the_run_is_locked_while_it_lasts_and_free_after(scripted: Bench) -> None:
    events = scripted.optimize()
    started = next(events)
    assert isinstance(started, RunStarted)
    assert scripted.store.run_is_active(RunId(started.run_id))
    with pytest.raises(RunLockedError):
        next(scripted.resume(started.run_id))
    list(events)
    assert not scripted.store.run_is_active(RunId(started.run_id))


def test_leaving_the_events_ends_the_workers_and_frees_the_run(scripted: Bench) -> None:
    source = optimize(
        Request(scripted.path, None, Policy.STRICT, steps=4), scripted.settings, scripted.store, scripted.stop
    )
    started = next(source)
    next(source)
    source.close()  # type: ignore[attr-defined]
    assert scripted.script.calls[-1] == "close"
    assert isinstance(started, RunStarted)
    assert not scripted.store.run_is_active(RunId(started.run_id))
    assert scripted.store.get_run(started.run_id).outcome is RunOutcome.OPEN


# -- stopping


@pytest.mark.parametrize("phase", ["hello", "capture", "open"])
def test_a_stop_before_the_run_began_leaves_nothing(scripted: Bench, phase: str) -> None:
    stop_on(scripted, phase)
    assert list(scripted.optimize()) == []
    assert scripted.store.list_runs() == ()
    assert scripted.script.calls[-1] == "close"


@pytest.mark.parametrize(("count", "kept"), [(1, 0), (3, 2)])
def test_a_stop_in_an_evaluation_keeps_the_best_so_far(scripted: Bench, count: int, kept: int) -> None:
    stop_on(scripted, "evaluate", count)
    end = finished(list(scripted.optimize()))
    assert (end.outcome, end.steps) == (RunOutcome.CANCELLED, kept)
    assert (end.best is not None) == (kept > 0)
    assert ("nothing had passed yet" in end.message) == (kept == 0)
    (run,) = scripted.store.list_runs()
    assert (run.outcome, len(scripted.store.steps(run.id))) == (RunOutcome.CANCELLED, kept)


def test_a_stop_between_steps(scripted: Bench) -> None:
    events = []
    for event in scripted.optimize():
        events.append(event)
        if isinstance(event, StepEvaluated) and event.step == 2:
            scripted.stop.set()
    assert (finished(events).outcome, finished(events).steps) == (RunOutcome.CANCELLED, 2)


def test_a_stop_in_the_confirmation(scripted: Bench) -> None:
    scripted.script.environment, scripted.script.verdict = GPU, lambda n, _: measured(0.5)
    stop_on(scripted, "confirm")
    end = finished(list(scripted.optimize(steps=2)))
    assert end.outcome == RunOutcome.CANCELLED
    assert end.best is not None


# -- budgets


def test_steps_seconds_and_defaults(scripted: Bench) -> None:
    scripted.script.on["evaluate"] = lambda: scripted.stop.wait(0.1) and None
    end = finished(list(scripted.optimize(steps=50, seconds=0.25)))
    assert 2 <= end.steps <= 4
    assert 0.25 <= end.seconds < 2.0
    assert scripted.script.targets == ["cuda:90"]


@pytest.mark.parametrize(("environment", "steps"), [(CPU, 3), (GPU, 30)])
def test_without_a_number_of_steps_the_machine_decides(scripted: Bench, environment: Environment, steps: int) -> None:
    scripted.script.environment = environment
    started = next(scripted.optimize(steps=None))
    assert isinstance(started, RunStarted)
    assert started.steps == steps


def test_no_step_at_all(scripted: Bench) -> None:
    end = finished(list(scripted.optimize(steps=0)))
    assert (end.outcome, end.message) == (
        RunOutcome.FAILED,
        "none of 0 candidates passed; the last: there was nothing to try",
    )


def test_the_run_ends_when_nothing_is_left_to_try(scripted: Bench) -> None:
    end = finished(list(scripted.optimize(steps=100_000)))
    assert 4 < end.steps < 100_000
    assert len(set(scripted.candidates())) == end.steps


def test_the_target_is_the_requests(scripted: Bench) -> None:
    list(scripted.optimize(steps=1, target="cuda:80"))
    (run,) = scripted.store.list_runs()
    list(scripted.resume(run.id, steps=2))
    assert scripted.script.targets == ["cuda:80", "cuda:80"]


# -- outcomes


def test_none_passed_tells_the_last_reason(scripted: Bench) -> None:
    scripted.script.verdict = lambda n, _: WRONG
    end = finished(list(scripted.optimize(steps=2)))
    assert (end.outcome, end.best) == (RunOutcome.FAILED, None)
    assert end.message.endswith("the last: inputs 'as given': wrong")


def test_the_fastest_is_confirmed_and_its_fresh_numbers_are_told(scripted: Bench) -> None:
    scripted.script.environment = GPU
    latencies = {1: 0.7, 2: 0.4, 3: 0.6, 4: 0.9}
    scripted.script.verdict = lambda n, _: measured(latencies[n])
    scripted.script.confirmation = lambda _: measured(0.5)
    end = finished(list(scripted.optimize()))
    assert end.outcome == RunOutcome.IMPROVED
    assert end.message == "2.00x faster than eager, 1.60x than torch.compile"
    assert end.best is not None
    assert end.best.id == scripted.candidates()[1]
    assert end.evaluation == measured(0.5)
    assert scripted.script.calls.count("confirm") == 1
    (run,) = scripted.store.list_runs()
    assert (run.best_step, run.final) == (2, measured(0.5))


def test_what_does_not_keep_its_speedup_gives_way(scripted: Bench) -> None:
    scripted.script.environment = GPU
    latencies = {1: 0.4, 2: 0.5, 3: 0.6, 4: 0.7}
    scripted.script.verdict = lambda n, _: measured(latencies[n], compiled_ms=None)
    answers = iter([measured(1.2), WRONG, measured(0.65, compiled_ms=None)])
    scripted.script.confirmation = lambda _: next(answers)
    end = finished(list(scripted.optimize()))
    assert (end.outcome, end.message) == (RunOutcome.IMPROVED, "1.54x faster than eager")
    assert end.best is not None
    assert end.best.id == scripted.candidates()[2]


@pytest.mark.parametrize("confirmed", [measured(1.0), measured(1.015), WRONG])
def test_nothing_better_after_three_tries(scripted: Bench, confirmed: Evaluation) -> None:
    scripted.script.environment = GPU
    scripted.script.verdict = lambda n, _: measured(0.5)
    scripted.script.confirmation = lambda _: confirmed
    end = finished(list(scripted.optimize()))
    assert end.outcome == RunOutcome.NOTHING_BETTER
    assert scripted.script.calls.count("confirm") == 3


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
def test_wrong_use_starts_no_worker(scripted: Bench, text: str, kind: type[Exception], reason: str) -> None:
    scripted.path.write_text(text)
    with pytest.raises(kind) as caught:
        list(scripted.optimize())
    assert reason in str(caught.value)
    assert scripted.script.calls == []


def test_a_file_that_is_not_text_or_not_there(scripted: Bench) -> None:
    scripted.path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        list(scripted.optimize())
    scripted.path.unlink()
    with pytest.raises(UsageError, match="no such file"):
        list(scripted.optimize())
    scripted.path.mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        list(scripted.optimize())


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
