"""Every fault is one sentence, a hint and a code; a traceback is for the log."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.cli import main
from adaexplore.cli.search import exit_code
from adaexplore.errors import AdaExploreError, SchemaVersionError, StoreUnwritableError, WorkerStartError
from adaexplore.model.events import RunFinished
from adaexplore.model.run import RunOutcome
from adaexplore.store.in_memory import InMemoryStore

from .fakes import REFUSED, FakeEngine, make_candidate, make_context

Run = Callable[..., int]


@pytest.mark.parametrize(
    ("outcome", "found", "expected"),
    [
        (RunOutcome.IMPROVED, True, 0),
        (RunOutcome.VERIFIED, True, 0),
        (RunOutcome.CANCELLED, True, 0),
        (RunOutcome.CANCELLED, False, 1),
        (RunOutcome.NOTHING_BETTER, True, 1),
        (RunOutcome.FAILED, False, 1),
    ],
)
def test_the_outcome_decides_the_code(outcome: RunOutcome, found: bool, expected: int) -> None:
    best = make_candidate(1) if found else None
    assert exit_code(RunFinished("r", outcome, "", 1, 1.0, best, None)) == expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["optimise"], "invalid choice: 'optimise'"),
        (["optimize"], "FILE[::NAME]"),
        (["optimize", "{module}", "--steps", "-3"], "expected a whole number, 1 or more, found '-3'"),
        (["optimize", "{module}", "--steps", "0"], "1 or more, found '0'"),
        (["optimize", "{module}", "--steps", "ten"], "found 'ten'"),
        (["optimize", "{module}", "--seconds", "nan"], "expected seconds, more than 0, found 'nan'"),
        (["optimize", "{module}", "--policy", "loose"], "invalid choice: 'loose'"),
        (["optimize", "{module}", "--target", "cuda90"], "such as cuda:90, found 'cuda90'"),
        (["optimize", "{module}", "--python", "/no/python"], "the interpreter /no/python does not exist"),
        (["optimize", "{module}", "--python", "{folder}"], "is a folder, not an interpreter"),
        (["optimize", "{module}", "--python", "{module}"], "twice.py cannot be executed"),
        (["optimize", "{module}", "--ste", "3"], "unrecognized arguments: --ste"),
        (["optimize", "{module}::"], "no class name behind the colons"),
        (["optimize", "::Twice"], "names no file"),
        (["optimize", "{module}::Twise"], "no nn.Module class Twise. Did you mean Twice?"),
        (["optimize", "{folder}"], "is a folder"),
        (["optimize", "{folder}/twise.py"], "no such file: "),
        (["optimize", "{folder}/no/where.py"], "no such file: "),
        (["optimize", "/dev/null"], "/dev/null is not a regular file"),
        (["optimize", "{empty}"], "empty.py is empty"),
        (["optimize", "{latin}"], "latin.py is not UTF-8 (byte 4)"),
        (["optimize", "{broken}"], "broken.py:2: syntax error: "),
        (["optimize", "{plain}"], "no nn.Module class in this file"),
        (["runs"], "the following arguments are required: COMMAND"),
        (["runs", "show", "nope"], "no run 'nope'"),
        (["runs", "resume", "nope"], "no run 'nope'"),
        (["runs", "insert", "nope"], "no run 'nope'"),
    ],
)
def test_wrong_use_is_2(
    run: Run, module_file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    folder = module_file.parent
    texts = {"empty": b"\n \n", "latin": b"# \xc3\xa9\xe4\n", "broken": b"x = 1\nclass A(:\n", "plain": b"x = 1\n"}
    for name, content in texts.items():
        (folder / f"{name}.py").write_bytes(content)
    places = {name: folder / f"{name}.py" for name in texts} | {"module": module_file, "folder": folder}
    assert run(*(argument.format(**places) for argument in arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, *rest = err.splitlines()
    assert first.startswith("error: ")
    assert sentence in first
    assert all(line.startswith("hint: ") for line in rest)
    assert len(rest) <= 1


def test_hints_say_what_was_meant(run: Run, module_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("optimize", module_file.with_name("twise.py"))
    assert f"hint: Did you mean {module_file}?" in capsys.readouterr().err
    module_file.write_text("x = 1\nclass A(:\n")
    run("optimize", module_file)
    assert "hint: The line reads: class A(:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (REFUSED, 1),
        (WorkerStartError(python="/usr/bin/python3", reason="torch is missing", hint="pip install torch"), 3),
        (StoreUnwritableError(path="/data", reason="No space left on device"), 3),
        (SchemaVersionError(path="/data", found=9, known=1), 3),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_faults_of_the_engine(
    engine: FakeEngine,
    run: Run,
    module_file: Path,
    capsys: pytest.CaptureFixture[str],
    fault: AdaExploreError,
    expected: int,
    as_json: bool,
    early: bool,
) -> None:
    if early:
        engine.early_fault = fault
    else:
        engine.fault = fault
    assert run("optimize", module_file, *(["--json"] if as_json else [])) == expected
    out, err = capsys.readouterr()
    assert err == f"error: {fault}\nhint: {fault.hint}\n"
    if as_json:
        assert json.loads(out.splitlines()[-1]) == {
            "event": "run_failed",
            "error": type(fault).__name__,
            "message": str(fault),
            "hint": fault.hint,
            "exit_code": expected,
        }


@pytest.mark.parametrize("as_json", [False, True])
def test_a_defect_is_a_sentence_and_a_log(
    engine: FakeEngine, run: Run, module_file: Path, data_dir: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    engine.fault = ZeroDivisionError("division\nby zero")
    assert run("optimize", module_file, *(["--json"] if as_json else [])) == 3
    out, err = capsys.readouterr()
    (log,) = (data_dir / "logs").iterdir()
    assert err == (
        "error: a defect of adaexplore: ZeroDivisionError: division by zero\n"
        f"hint: The log is {log}; please report it.\n"
    )
    assert "Traceback" in log.read_text()
    if as_json:
        assert json.loads(out.splitlines()[-1])["event"] == "run_failed"


def test_a_defect_where_no_log_can_be_written_goes_elsewhere(
    engine: FakeEngine, tmp_path: Path, module_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.early_fault = ZeroDivisionError()
    (tmp_path / "data").write_text("in the way")
    context = replace(make_context(engine, tmp_path / "data"), open_store=lambda _: InMemoryStore())
    assert main(["optimize", str(module_file)], context) == 3
    log = Path(capsys.readouterr().err.split("The log is ")[1].split(";")[0])
    assert "ZeroDivisionError" in log.read_text()
    log.unlink()


def test_an_unwritable_store_is_3(engine: FakeEngine, tmp_path: Path, module_file: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    context = make_context(engine, tmp_path / "data")
    assert main(["optimize", str(module_file)], context) == 3
    assert main(["runs", "list"], context) == 3
    assert main(["demo"], context) == 3


def test_wrong_use_is_an_event_too(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("optimize", "/no/file.py", "--json") == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["exit_code"] == 2


def test_help_and_version_are_0(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--version"], ["--help"], ["optimize", "--help"], ["runs", "--help"], ["demo", "--help"]):
        assert run(*arguments) == 0
    assert capsys.readouterr().out.startswith("adaexplore ")


def test_a_reader_that_goes_away_ends_it_quietly(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1, closefd=False) as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert run("runs", "list") == 141
        monkeypatch.undo()
    os.close(writing)
