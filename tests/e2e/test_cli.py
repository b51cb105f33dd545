"""The real command in processes of its own: the demo, every bad input, signals, and resumption after `kill -9`."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adaexplore.store.sqlite import FILE_NAME, SqliteStore, migrations

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MODULES = Path(__file__).parents[1] / "fixtures" / "modules"
COMMAND = [sys.executable, "-m", "adaexplore.cli"]
DEMO_SECONDS = 60
"""The promise to a person who tries it on two cores without a GPU."""
STEPS = 4

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def environment(data_dir: Path) -> dict[str, str]:
    return {**os.environ, "ADAEXPLORE_DATA_DIR": str(data_dir)}  # noqa: TID251 - the child's environment


@pytest.fixture
def cli(environment: dict[str, str], tmp_path: Path) -> Cli:
    """Give a function that runs the command to its end."""

    def run(*arguments: object, prefix: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        command = [*prefix, *COMMAND, *map(str, arguments)]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=200
        )

    return run


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Give a function that starts the command; nothing of it outlives the test."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*arguments: object) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def read_until(process: "subprocess.Popen[str]", wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    assert process.stdout is not None
    events = []
    for line in process.stdout:
        events.append(json.loads(line))
        if wanted(events[-1]):
            return events
    raise AssertionError(f"it ended before that: {events}, {process.stderr and process.stderr.read()}")


def is_step(number: int) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event["event"] == "step_evaluated" and event["step"] == number


def processes() -> dict[int, int]:
    """Give the parent of every process that is alive, from ``/proc``."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in "ZX":
            parents[int(stat.parent.name)] = int(parent)
    return parents


def descendants(pid: int) -> set[int]:
    parents = processes()
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in {pid, *found}} - found:
        found |= more
    return found


def survivors(pids: set[int], seconds: float = 10) -> set[int]:
    deadline = time.monotonic() + seconds
    while (left := pids & processes().keys()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def test_the_demo_finishes_in_time(cli: Cli, data_dir: Path) -> None:
    begin = time.monotonic()
    done = cli("demo")
    seconds = time.monotonic() - begin
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "Errors against float64" in done.stdout
    assert "@triton.jit" in done.stdout
    if "no GPU" in done.stdout:
        assert "not measured: no GPU; it agrees with the module in Triton's interpreter" in done.stdout
        assert "it compiles for cuda:90" in done.stdout
        assert "speedup" not in done.stdout
    else:
        assert "torch.compile" in done.stdout
    assert (data_dir / "demo" / "rms_norm.py").exists()
    assert seconds < DEMO_SECONDS


@pytest.mark.parametrize(
    ("target", "expected", "words"),
    [
        ("no_such_file.py", 2, "no such file"),
        ("rms_norm_residual.py::RMSNorm", 2, "no nn.Module class RMSNorm"),
        ("constructor_raises.py", 1, "raised"),
        ("forward_raises.py", 1, "forward raised"),
        ("unsupported_conv.py", 1, "is not supported"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_input(cli: Cli, target: str, expected: int, words: str, as_json: bool) -> None:
    done = cli("optimize", MODULES / target, *(["--json"] if as_json else []))
    assert done.returncode == expected, done.stdout + done.stderr
    assert done.stderr.startswith("error: ")
    assert words in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stdout + done.stderr
    if as_json:
        (event,) = events_of(done.stdout)
        assert (event["event"], event["exit_code"]) == ("run_failed", expected)


def test_an_unsupported_operator_is_named_with_its_line(cli: Cli) -> None:
    text = (MODULES / "unsupported_conv.py").read_text().splitlines()
    error = cli("optimize", MODULES / "unsupported_conv.py").stderr
    assert "conv" in error
    line = int(error.split("unsupported_conv.py:")[1].split(":")[0])
    assert "self.conv" in text[line - 1] or "conv" in text[line - 1]


def test_a_syntax_error_is_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\nclass A(torch.nn.Module:\n")
    done = cli("optimize", "broken.py")
    assert done.returncode == 2
    assert f"{tmp_path / 'broken.py'}:2: syntax error" in done.stderr


def test_an_interpreter_without_torch_is_3(cli: Cli, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    done = cli("optimize", MODULES / "gelu_bias.py", "--python", tmp_path / "bare" / "bin" / "python")
    assert done.returncode == 3, done.stderr
    assert "torch" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("optimize", MODULES / "gelu_bias.py"), ("runs", "list"), ("demo",)])
def test_a_store_of_a_newer_schema_is_3(cli: Cli, data_dir: Path, arguments: tuple[object, ...]) -> None:
    SqliteStore(data_dir).close()
    db = sqlite3.connect(data_dir / FILE_NAME)
    db.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    db.close()
    done = cli(*arguments)
    assert done.returncode == 3
    assert "schema" in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1].startswith("hint: Update adaexplore")


@pytest.mark.parametrize("arguments", [("optimize", MODULES / "gelu_bias.py"), ("runs", "list"), ("demo",)])
def test_an_unwritable_data_directory_is_3(cli: Cli, data_dir: Path, arguments: tuple[object, ...]) -> None:
    data_dir.write_text("in the way")  # root, too, cannot make a folder here
    done = cli(*arguments)
    assert done.returncode == 3
    assert done.stderr.startswith("error: cannot write ")
    assert "ADAEXPLORE_DATA_DIR" in done.stderr


def test_a_full_disk_is_3(cli: Cli) -> None:
    # No file may grow, which the kernel refuses as it does on a full disk.
    done = cli("optimize", MODULES / "gelu_bias.py", prefix=("sh", "-c", 'ulimit -f 0; exec "$@"', "sh"))
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("error: cannot write the store ")


def test_importing_the_command_line_is_light(environment: dict[str, str]) -> None:
    code = "import sys, adaexplore.cli; print([m for m in ('torch', 'triton', 'numpy', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_the_best_so_far(start: Start, cli: Cli, number: signal.Signals) -> None:
    process = start("optimize", MODULES / "rms_norm_residual.py", "--steps", 500, "--json")
    events = read_until(process, lambda event: event.get("best_candidate_id") is not None)
    children = descendants(process.pid)
    assert children
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "stopping; keeping the best so far" in err
    finished = events_of(out)[-1]
    assert finished["outcome"] == "cancelled"
    assert finished["best"]["id"] in {event.get("best_candidate_id") for event in [*events, *events_of(out)]}
    assert survivors(children) == set()
    (shown,) = events_of(cli("runs", "show", events[0]["run_id"], "--json").stdout)
    assert shown["state"] == "cancelled"
    assert len(shown["tree"]) == finished["steps"]


def test_a_second_signal_ends_it_at_once(start: Start) -> None:
    process = start("optimize", MODULES / "rms_norm_residual.py", "--steps", 500, "--json")
    read_until(process, is_step(1))
    children = descendants(process.pid)
    process.send_signal(signal.SIGSTOP)  # so that both signals wait for it, and neither is too late
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert survivors(children) == set()


def test_a_killed_search_goes_on_in_the_same_tree(start: Start, cli: Cli) -> None:
    module = MODULES / "rms_norm_residual.py"
    whole = events_of(cli("optimize", module, "--steps", STEPS, "--json").stdout)

    process = start("optimize", module, "--steps", STEPS, "--json")
    told = read_until(process, is_step(2))
    children = descendants(process.pid)
    assert children
    process.kill()
    rest, _ = process.communicate()
    assert survivors(children) == set()
    told += events_of(rest[: rest.rfind("\n") + 1])  # the last line may be half a line
    run_id = told[0]["run_id"]

    rows = {row["id"]: row for row in events_of(cli("runs", "list", "--json").stdout)}
    assert rows[run_id]["state"] == "interrupted"
    assert rows[run_id]["steps"] >= len(told) - 1
    (before,) = events_of(cli("runs", "show", run_id, "--json").stdout)

    resumed = cli("runs", "resume", run_id[:6], "--json")
    assert resumed.returncode == 0, resumed.stderr
    started, *steps, finished = events_of(resumed.stdout)
    assert started["resumed_steps"] == len(before["tree"])
    assert [step["step"] for step in steps] == list(range(len(before["tree"]) + 1, STEPS + 1))
    assert finished["steps"] == STEPS
    (after,) = events_of(cli("runs", "show", run_id, "--json").stdout)
    assert after["tree"][: len(before["tree"])] == before["tree"]
    assert [step["candidate"]["id"] for step in after["tree"]] == [event["candidate_id"] for event in whole[1:-1]]
    assert after["best_step"] == next(
        step["step"] for step in whole[1:-1] if step["candidate_id"] == whole[-1]["best"]["id"]
    )


def test_a_run_at_work_is_not_resumed_by_a_second_process(start: Start, cli: Cli) -> None:
    process = start("optimize", MODULES / "rms_norm_residual.py", "--steps", 500, "--json")
    run_id = read_until(process, lambda event: event["event"] == "run_started")[0]["run_id"]
    (row,) = events_of(cli("runs", "list", "--json").stdout)
    assert row["state"] == "running"
    done = cli("runs", "resume", run_id)
    assert done.returncode == 3
    assert f"is being worked on by process {process.pid}" in done.stderr
