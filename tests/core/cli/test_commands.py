"""What each command writes, and where."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from adaexplore.capture.locate import find_modules
from adaexplore.cli.demo import copy_module
from adaexplore.config import Settings
from adaexplore.model.events import RunFinished, RunStarted, StepEvaluated
from adaexplore.model.run import Run as StoredRun
from adaexplore.model.run import RunOutcome, StepRecord
from adaexplore.model.serialization import from_data
from adaexplore.model.task import Policy
from adaexplore.optimize import Request
from adaexplore.store.sqlite import SqliteStore

from .fakes import INCORRECT, MODULE, UNMEASURED, FakeEngine, make_run, measured

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def lines_of(text: str, module_file: Path) -> str:
    """Give what was printed, with the test's own folder taken out."""
    return "\n".join(line.rstrip() for line in text.replace(str(module_file.parent), "/home/u").splitlines())


def test_json_is_one_event_a_line_and_nothing_else(run: Run, module_file: Path, capsys: Capture) -> None:
    assert run("optimize", module_file, "--json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    started, *steps, finished = [json.loads(line) for line in out.splitlines()]
    assert from_data(started, RunStarted).path == str(module_file)
    assert [from_data(step, StepEvaluated).step for step in steps] == [1, 2, 3]
    assert from_data(finished, RunFinished).outcome == "improved"


def test_options_reach_the_engine(run: Run, engine: FakeEngine, module_file: Path, data_dir: Path) -> None:
    options = ["--steps", "7", "--seconds", "2.5", "--policy", "tf32", "--seed", "4", "--target", "cuda:100"]
    run("optimize", f"{module_file}::Twice", *options, "--python", sys.executable)
    assert engine.requests == [
        Request(module_file, "Twice", Policy.TF32, 7, 2.5, 4, "cuda:100"),
        Settings(data_dir, sys.executable, "cuda:100"),
    ]


def test_defaults(run: Run, engine: FakeEngine, module_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(module_file.parent)
    run("optimize", module_file.name)
    assert engine.requests[0] == Request(module_file, "Twice", Policy.USER, None, None, 0, "cuda:90")


def test_an_interpreter_is_found_by_its_name(run: Run, engine: FakeEngine, module_file: Path) -> None:
    run("optimize", module_file, "--python", "sh")  # any program will do for the engine that does no work
    settings = engine.requests[1]
    assert isinstance(settings, Settings)
    assert Path(settings.python).is_absolute()


def test_plain_output_on_a_gpu(run: Run, module_file: Path, capsys: Capture, snapshot: SnapshotAssertion) -> None:
    assert run("optimize", module_file) == 0
    assert lines_of(capsys.readouterr().out, module_file) == snapshot


def test_plain_output_without_a_gpu(
    run: Run, engine: FakeEngine, module_file: Path, capsys: Capture, snapshot: SnapshotAssertion
) -> None:
    engine.evaluations, engine.outcome = (INCORRECT, UNMEASURED), RunOutcome.VERIFIED
    assert run("optimize", module_file) == 0
    assert lines_of(capsys.readouterr().out, module_file) == snapshot


def test_plain_output_where_torch_compile_failed_and_nothing_is_better(
    run: Run, engine: FakeEngine, module_file: Path, capsys: Capture, snapshot: SnapshotAssertion
) -> None:
    engine.evaluations, engine.outcome = (measured(0.9, compiled=False),), RunOutcome.NOTHING_BETTER
    assert run("optimize", module_file) == 1
    assert lines_of(capsys.readouterr().out, module_file) == snapshot


def test_plain_output_where_no_candidate_passed(
    run: Run, engine: FakeEngine, module_file: Path, capsys: Capture, snapshot: SnapshotAssertion
) -> None:
    engine.evaluations, engine.outcome = (INCORRECT,), RunOutcome.FAILED
    assert run("optimize", module_file) == 1
    assert lines_of(capsys.readouterr().out, module_file) == snapshot


def test_a_first_signal_keeps_the_best(
    run: Run, engine: FakeEngine, module_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine.evaluations = (measured(1.5), measured(2.0))
    engine.signals = 1
    assert run("optimize", module_file, "--json") == 0
    out, err = capfd.readouterr()
    assert json.loads(out.splitlines()[-1])["outcome"] == "cancelled"
    assert len(out.splitlines()) == 3
    assert err.startswith("stopping; keeping the best so far")


def test_a_signal_before_anything_passed_is_1(run: Run, engine: FakeEngine, module_file: Path) -> None:
    engine.signals = 1
    assert run("optimize", module_file) == 1


def test_a_signal_before_the_module_was_captured_is_1(
    run: Run, engine: FakeEngine, module_file: Path, capsys: Capture
) -> None:
    engine.captures = False
    assert run("optimize", module_file, "--json") == 1
    assert json.loads(capsys.readouterr().out)["message"].startswith("stopped before the module was captured")


def test_a_fault_of_ours_ends_the_search(engine: FakeEngine, run: Run, module_file: Path) -> None:
    engine.fault = ZeroDivisionError()
    run("optimize", module_file)
    assert engine.closed


def test_runs_list(run: Run, module_file: Path, data_dir: Path, capsys: Capture, snapshot: SnapshotAssertion) -> None:
    assert run("runs", "list") == 0
    assert "No runs yet" in capsys.readouterr().out
    run("optimize", module_file)
    store = SqliteStore(data_dir)
    store.create_run(make_run(module_file, "aa11", created_at="2026-03-02T09:00:00Z"))
    store.create_run(make_run(module_file, "bb22", created_at="2026-03-03T09:00:00Z"))
    capsys.readouterr()
    with store.lock_run(make_run(module_file, "bb22").id):
        assert run("runs", "list") == 0
        assert lines_of(capsys.readouterr().out, module_file) == snapshot
        assert run("runs", "list", "--json") == 0
    store.close()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["state"] for row in rows] == ["running", "interrupted", "improved"]
    assert rows[2]["best_speedup"] == pytest.approx(2.31)


def test_runs_show(run: Run, module_file: Path, capsys: Capture, snapshot: SnapshotAssertion) -> None:
    run("optimize", module_file)
    capsys.readouterr()
    assert run("runs", "show", "5f", "--source") == 0
    assert lines_of(capsys.readouterr().out, module_file) == snapshot
    assert run("runs", "show", "5f", "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    data = json.loads(line)
    assert from_data(data["run"], StoredRun).id == "5f0c2a"
    assert [from_data(step, StepRecord).step for step in data["tree"]] == [1, 2, 3]
    assert data["best_step"] == 3


def test_runs_show_of_a_run_without_steps(run: Run, module_file: Path, data_dir: Path, capsys: Capture) -> None:
    store = SqliteStore(data_dir)
    store.create_run(make_run(module_file))
    store.close()
    assert run("runs", "show", "5f0c2a", "--source") == 0
    assert "no source to show" in capsys.readouterr().out


def test_runs_resume_goes_on(run: Run, engine: FakeEngine, module_file: Path, capsys: Capture) -> None:
    engine.signals = 1
    run("optimize", module_file)
    engine.signals = 0
    capsys.readouterr()
    assert run("runs", "resume", "5f0", "--steps", 3, "--seconds", 9, "--json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events[0]["resumed_steps"] == 1
    assert [event["step"] for event in events[1:-1]] == [2, 3]
    assert engine.requests[-4:][0] == "5f0c2a"
    assert engine.requests[-2:] == [3, 9.0]


def test_the_demo_runs_on_a_copy(
    run: Run, engine: FakeEngine, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run("demo", "--json") == 0
    request = engine.requests[0]
    assert isinstance(request, Request)
    assert request.path == data_dir / "demo" / "rms_norm.py"
    assert (request.name, request.steps, request.seconds) == ("ResidualRMSNorm", None, 40.0)
    assert list(Path.cwd().iterdir()) == []
    assert all(json.loads(line) for line in capsys.readouterr().out.splitlines())
    engine.requests.clear()
    run("demo", "--steps", 2)
    assert "The module is in " in capsys.readouterr().out


def test_the_demo_leaves_an_edited_copy_alone(data_dir: Path) -> None:
    first = copy_module(data_dir)
    assert copy_module(data_dir) == first
    (module,) = find_modules(first.read_text())
    assert module.workload is not None
    first.write_text(MODULE)
    second = copy_module(data_dir)
    assert second == data_dir / "demo-2" / "rms_norm.py"
    assert first.read_text() == MODULE
