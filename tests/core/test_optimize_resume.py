"""A run that ended goes on where it stands, and only where nothing has changed since.

The task is captured once by a real worker; candidates are the builtin proposer's; verdicts are made up, so that a run
takes no time.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.scripted import GPU, Bench, Journal, finished, measured

from adaexplore.errors import UsageError, WorkerError
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.events import RunStarted, StepEvaluated
from adaexplore.model.run import RunOutcome

pytestmark = pytest.mark.slow


# -- going on


def test_a_resumed_run_is_the_uninterrupted_one(scripted: Bench) -> None:
    verdicts: dict[str, Evaluation] = {}
    scripted.script.environment = GPU

    def verdict(_: int, candidate: Candidate) -> Evaluation:
        return verdicts.setdefault(candidate.id, measured(0.3 + int(candidate.id[:4], 16) / 65536))

    scripted.script.verdict, scripted.script.confirmation = verdict, lambda _: measured(0.5)
    list(scripted.optimize(steps=12, seed=7))
    whole, scripted.store = scripted.candidates(), Journal()
    for step, event in enumerate(scripted.optimize(steps=12, seed=7)):
        if step == 5:
            assert isinstance(event, StepEvaluated)
            scripted.stop.set()
    scripted.stop.clear()
    (run,) = scripted.store.list_runs()
    assert run.outcome is RunOutcome.CANCELLED
    events = list(scripted.resume(run.id))
    assert isinstance(events[0], RunStarted)
    assert events[0].resumed_steps == 5
    assert scripted.candidates() == whole


def test_more_steps_for_a_finished_run(scripted: Bench) -> None:
    list(scripted.optimize(steps=2))
    (run,) = scripted.store.list_runs()
    spent = run.seconds
    assert finished(list(scripted.resume(run.id))).steps == 2  # nothing to do, the same outcome
    end = finished(list(scripted.resume(run.id[:6], steps=5)))
    assert (end.steps, len(scripted.candidates()), len(set(scripted.candidates()))) == (5, 5, 5)
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
def test_a_changed_source_is_not_resumed(scripted: Bench, change: Callable[[Path], None], reason: str) -> None:
    list(scripted.optimize(steps=1))
    (run,) = scripted.store.list_runs()
    change(scripted.path)
    with pytest.raises(UsageError) as caught:
        list(scripted.resume(run.id, steps=2))
    assert reason in f"{caught.value} {caught.value.hint}"
    assert scripted.store.get_run(run.id) == run


def test_comments_and_other_classes_may_change(scripted: Bench) -> None:
    list(scripted.optimize(steps=1))
    (run,) = scripted.store.list_runs()
    scripted.path.write_text("# moved down\n\n" + scripted.path.read_text() + "\n\nclass Other: ...\n")
    assert finished(list(scripted.resume(run.id, steps=2))).steps == 2


def test_another_gpu_is_not_resumed_on(scripted: Bench) -> None:
    list(scripted.optimize(steps=1))
    (run,) = scripted.store.list_runs()
    scripted.script.environment = GPU
    with pytest.raises(UsageError, match="was made with no GPU, here is NVIDIA H200"):
        list(scripted.resume(run.id, steps=2))
    assert scripted.store.get_run(run.id) == run


def test_a_fault_of_the_machine_leaves_a_run_to_resume(scripted: Bench) -> None:
    def fail() -> None:
        if scripted.script.calls.count("evaluate") == 3:
            raise WorkerError(reason="the disk is gone")

    scripted.script.on["evaluate"] = fail
    with pytest.raises(WorkerError, match="the disk is gone"):
        list(scripted.optimize())
    (run,) = scripted.store.list_runs()
    assert (run.outcome, len(scripted.candidates())) == (RunOutcome.OPEN, 2)
    assert scripted.script.calls[-1] == "close"
    assert finished(list(scripted.resume(run.id))).steps == 4
