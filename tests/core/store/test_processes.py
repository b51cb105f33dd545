"""Several real processes at one store, and what is left when one is killed."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adaexplore.errors import RunLockedError
from adaexplore.model.run import RunId
from adaexplore.store.sqlite import SqliteStore

from .writer import make_step

pytestmark = pytest.mark.slow

WRITER = Path(__file__).with_name("writer.py")
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start writers on one folder; none outlives the test."""
    processes: list[subprocess.Popen[str]] = []

    def start_writer(action: str, run_id: str, *numbers: int) -> "subprocess.Popen[str]":
        command = [sys.executable, str(WRITER), action, str(tmp_path), run_id, *map(str, numbers)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield start_writer
    for process in processes:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def read_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("after", [1, 7, 40])
def test_sigkill_loses_no_acknowledged_step(tmp_path: Path, start: Start, after: int) -> None:
    process = start("write", "a", 1_000_000)
    for _ in range(after):
        read_line(process)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    acknowledged = after + len(re.findall(r"^\d+$", rest, re.MULTILINE))
    store = SqliteStore(tmp_path)
    steps = store.steps(RunId("a"))
    # The step in flight may have reached the disk just before its process could say so.
    assert len(steps) in (acknowledged, acknowledged + 1)
    assert steps == tuple(make_step("a", step) for step in range(1, len(steps) + 1))
    store.add_step(make_step("a", len(steps) + 1))
    store.close()


def test_processes_that_open_a_new_folder_and_write_at_once_lose_nothing(tmp_path: Path, start: Start) -> None:
    processes = {name: start("write", name, 25) for name in "abcd"}
    for process in processes.values():
        process.communicate()
    assert [process.returncode for process in processes.values()] == [0, 0, 0, 0]
    store = SqliteStore(tmp_path)
    for name in processes:
        assert store.steps(RunId(name)) == tuple(make_step(name, step) for step in range(1, 26))
    store.close()


def test_a_run_is_locked_while_its_process_lives_and_no_longer(tmp_path: Path, start: Start) -> None:
    store = SqliteStore(tmp_path)
    assert not store.run_is_active(RunId("a"))
    process = start("hold", "a")
    assert read_line(process) == "locked"
    assert store.run_is_active(RunId("a"))
    with pytest.raises(RunLockedError) as caught, store.lock_run(RunId("a")):
        pass
    assert caught.value.details == {"run_id": "a", "pid": str(process.pid)}
    with store.lock_run(RunId("b")):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not store.run_is_active(RunId("a"))
    with store.lock_run(RunId("a")):
        pass
    store.close()


def test_a_worker_does_not_inherit_the_lock_of_its_run(tmp_path: Path) -> None:
    # Else a worker that outlives a killed search would keep the run from being resumed.
    store = SqliteStore(tmp_path)
    with store.lock_run(RunId("a")):
        worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert worker.poll() is None
    assert not store.run_is_active(RunId("a"))
    worker.communicate(b"\n")
    store.close()


@pytest.mark.parametrize("limit_bytes", [0, 100_000])
def test_a_disk_that_takes_no_more_is_an_error_and_loses_nothing(
    tmp_path: Path, start: Start, limit_bytes: int
) -> None:
    process = start("fill", "a", limit_bytes)
    *acknowledged, last = process.communicate()[0].splitlines()
    assert process.returncode == 0
    assert last.startswith(f"unwritable: cannot write the store {tmp_path}")
    store = SqliteStore(tmp_path)
    if limit_bytes:
        assert [step.step for step in store.steps(RunId("a"))] == [int(line) for line in acknowledged]
    else:
        assert store.list_runs() == ()
    store.close()
