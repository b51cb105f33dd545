"""The kernel enters the user's files whole, or not at all."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from adaexplore.capture.locate import find_modules
from adaexplore.model.run import RunOutcome

from .fakes import INCORRECT, MODULE, UNMEASURED, FakeEngine, measured

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def replaced(path: Path) -> bool:
    (module,) = find_modules(path.read_text())
    return module.replacement_line is not None


@pytest.mark.parametrize("how", ["optimize", "runs"])
def test_writes_a_sidecar_and_one_line(run: Run, module_file: Path, capsys: Capture, how: str) -> None:
    module_file.chmod(0o640)
    if how == "optimize":
        assert run("optimize", module_file, "--insert") == 0
    else:
        run("optimize", module_file)
        assert not replaced(module_file)
        assert run("runs", "insert", "5f0") == 0
    sidecar = module_file.with_name("twice_triton.py")
    assert f"Inserted: {sidecar}, and line 6 of {module_file}." in capsys.readouterr().out
    lines = module_file.read_text().splitlines(keepends=True)
    assert "# adaexplore: 2.31x vs eager" in lines.pop(5)
    assert "".join(lines) == MODULE
    assert "_twice_kernel" in sidecar.read_text()
    assert stat.S_IMODE(module_file.stat().st_mode) == 0o640
    assert {path.name for path in module_file.parent.iterdir()} == {"twice.py", "twice_triton.py", "data"}


def test_inserts_again_over_itself(run: Run, module_file: Path) -> None:
    run("optimize", module_file)
    run("runs", "insert", "5f0")
    once = module_file.read_text()
    assert run("runs", "insert", "5f0") == 0
    assert module_file.read_text() == once


def test_a_link_stays_a_link(run: Run, module_file: Path, tmp_path: Path) -> None:
    link = tmp_path / "linked" / "model.py"
    link.parent.mkdir()
    link.symlink_to(module_file)
    assert run("optimize", link, "--insert") == 0
    assert link.is_symlink()
    assert replaced(module_file)
    assert link.with_name("model_triton.py").exists()  # where an import through the link looks for it


def test_with_json_the_sentence_goes_to_standard_error(run: Run, module_file: Path, capsys: Capture) -> None:
    assert run("optimize", module_file, "--insert", "--json") == 0
    out, err = capsys.readouterr()
    assert "Inserted" not in out
    assert err.startswith("Inserted: ")


def test_what_was_verified_without_a_gpu_is_inserted(run: Run, engine: FakeEngine, module_file: Path) -> None:
    engine.evaluations, engine.outcome = (UNMEASURED,), RunOutcome.VERIFIED
    assert run("optimize", module_file, "--insert") == 0
    assert "verified, not measured: no GPU" in module_file.read_text()


@pytest.mark.parametrize(
    ("evaluation", "outcome", "reason"),
    [
        (measured(0.9), RunOutcome.NOTHING_BETTER, "is no faster than eager"),
        (INCORRECT, RunOutcome.FAILED, "has no kernel to insert"),
    ],
)
def test_nothing_is_inserted_where_nothing_is_better(
    run: Run,
    engine: FakeEngine,
    module_file: Path,
    capsys: Capture,
    evaluation: object,
    outcome: RunOutcome,
    reason: str,
) -> None:
    engine.evaluations, engine.outcome = (evaluation,), outcome  # type: ignore[assignment]
    assert run("optimize", module_file, "--insert") == 1
    assert "Nothing was inserted: the outcome is" in capsys.readouterr().out
    assert run("runs", "insert", "5f0c2a") == 2
    assert reason in capsys.readouterr().err
    assert module_file.read_text() == MODULE


def test_a_class_that_has_changed_is_refused(run: Run, module_file: Path, capsys: Capture) -> None:
    run("optimize", module_file)
    module_file.write_text(MODULE.replace("x * 2", "x * 3"))
    assert run("runs", "insert", "5f0c2a") == 2
    assert "Twice has changed since run 5f0c2a" in capsys.readouterr().err
    module_file.write_text("# a comment above\n" + MODULE)
    assert run("runs", "insert", "5f0c2a") == 0


def test_a_foreign_sidecar_is_told_before_the_search(
    run: Run, engine: FakeEngine, module_file: Path, capsys: Capture
) -> None:
    for content in (b"mine = 1\n", b"\xff\xfe"):
        module_file.with_name("twice_triton.py").write_bytes(content)
        assert run("optimize", module_file, "--insert") == 2
        assert "was not written by adaexplore" in capsys.readouterr().err
    assert engine.requests == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_takes_nothing_is_told_before_the_search(
    run: Run, engine: FakeEngine, module_file: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o555)
    assert run("optimize", module_file, "--insert") == 3
    tmp_path.chmod(0o755)
    assert engine.requests == []


def test_a_sidecar_that_cannot_be_used_leaves_the_file_alone(run: Run, module_file: Path, capsys: Capture) -> None:
    run("optimize", module_file)
    module_file.with_name("twice_triton.py").mkdir()
    assert run("runs", "insert", "5f0c2a") == 3
    assert "cannot write" in capsys.readouterr().err
    assert module_file.read_text() == MODULE
