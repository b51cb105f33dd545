"""Every executor keeps the contract in ``adaexplore.executors.executor``."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.core.worker.processes import ended, group_of
from tests.core.workshop import SUBJECTS, capture_file, make_settings, open_for, read_candidate

from adaexplore.config import Limits
from adaexplore.errors import WorkerError
from adaexplore.executors.executor import Executor
from adaexplore.executors.local import LocalExecutor
from adaexplore.model.evaluation import EvaluationStatus
from adaexplore.worker.client import Stopped

pytestmark = pytest.mark.slow

RIGHT, _, _ = read_candidate("honest_rms_norm")
WRONG, _, _ = read_candidate("eps_missing")
CRASHING, _, _ = read_candidate("reads_address_zero")
ENDLESS, _, _ = read_candidate("endless_launcher")


def open_local(data: Path, stop: threading.Event) -> LocalExecutor:
    executor = LocalExecutor(make_settings(data, Limits(compile=60.0, compare=5.0)), stop)
    open_for(executor, capture_file(executor, SUBJECTS, "RMSNormResidual"))
    return executor


def local_groups(executor: Executor) -> list[int]:
    assert isinstance(executor, LocalExecutor)
    workers = (executor.main, executor._interpreter)
    return [pid for worker in workers if worker.pid for pid in group_of(worker.pid)]


EXECUTORS: dict[str, tuple[Callable[[Path, threading.Event], Executor], Callable[[Executor], list[int]]]] = {
    "local": (open_local, local_groups),
}


class Subject:
    def __init__(self, name: str, data: Path) -> None:
        make, self._processes = EXECUTORS[name]
        self.stop = threading.Event()
        self.executor = make(data, self.stop)

    def processes(self) -> list[int]:
        return self._processes(self.executor)


@pytest.fixture(scope="module", params=EXECUTORS)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    subject = Subject(request.param, tmp_path_factory.mktemp("data"))
    yield subject
    subject.executor.close()


def test_a_candidates_fault_is_a_status(shared: Subject) -> None:
    assert shared.executor.evaluate(WRONG).status is EvaluationStatus.INCORRECT
    assert shared.executor.evaluate(CRASHING).status is EvaluationStatus.CRASHED


def test_the_same_candidate_gets_the_same_verdict(shared: Subject) -> None:
    first, second = shared.executor.evaluate(RIGHT), shared.executor.evaluate(RIGHT)
    assert first.status is EvaluationStatus.PASSED
    assert first.correctness == second.correctness


def test_a_verdict_does_not_depend_on_what_was_judged_before(shared: Subject) -> None:
    before = shared.executor.evaluate(RIGHT).correctness
    for bad in (CRASHING, WRONG):
        shared.executor.evaluate(bad)
        assert shared.executor.evaluate(RIGHT).correctness == before


def test_a_passed_candidate_says_what_it_was_judged_by(shared: Subject) -> None:
    evaluation = shared.executor.evaluate(RIGHT)
    assert evaluation.correctness is not None
    assert evaluation.compilation is not None
    assert evaluation.environment is not None
    assert (evaluation.measurement is None) == (evaluation.environment.gpu == "")
    assert [k.name for k in evaluation.compilation.kernels] == ["rms_norm_kernel"]


def test_it_can_do_at_least_one_thing_at_a_time(shared: Subject) -> None:
    assert shared.executor.available_parallelism() >= 1


def test_a_confirmation_is_made_in_fresh_processes(shared: Subject) -> None:
    before = shared.processes()
    assert before
    evaluation = shared.executor.confirm(RIGHT)
    assert evaluation.status is EvaluationStatus.PASSED
    assert not set(before) & set(shared.processes())
    assert ended(before)


def test_a_stop_ends_the_evaluation_in_flight_and_its_process(shared: Subject) -> None:
    shared.executor.evaluate(WRONG)
    before = shared.processes()
    timer = threading.Timer(1.0, shared.stop.set)
    timer.start()
    started = time.monotonic()
    with pytest.raises(Stopped):
        shared.executor.evaluate(ENDLESS)
    assert time.monotonic() - started < 4.0
    timer.join()
    shared.stop.clear()
    assert len(shared.processes()) < len(before)


def test_close_leaves_no_process_and_may_be_repeated(shared: Subject) -> None:
    everything = shared.processes()
    assert len(everything) >= 2
    shared.executor.close()
    shared.executor.close()
    assert ended(everything)
    assert shared.processes() == []


def test_a_module_that_cannot_be_built_again_is_the_machines_fault(shared: Subject, tmp_path: Path) -> None:
    path = tmp_path / "subjects.py"
    path.write_text(SUBJECTS.read_text())
    assert isinstance(shared.executor, LocalExecutor)
    task = capture_file(shared.executor, path, "LayerNorm")
    path.write_text("import nowhere_to_be_found\n")
    shared.executor.close()
    with pytest.raises(WorkerError, match="cannot be built again: ModuleNotFoundError"):
        open_for(shared.executor, task)
