"""An interpreter that cannot be a worker is explained in one sentence that says what to install."""

import os
from pathlib import Path

import pytest
from tests.core.worker import interpreters

from adaexplore.errors import WorkerStartError
from adaexplore.worker.client import WorkerClient


def refusal(python: Path | str, tmp_path: Path, *, interpret: bool = False) -> str:
    with (
        WorkerClient(str(python), tmp_path / "worker.log", interpret=interpret) as client,
        pytest.raises(WorkerStartError) as caught,
    ):
        client.hello()
    assert "--python" in caught.value.hint
    assert str(python) in str(caught.value)
    return str(caught.value.details["reason"])


def test_an_interpreter_that_does_not_exist(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere" / "python", tmp_path) == "No such file or directory"


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "python"
    file.write_text("")
    assert refusal(file, tmp_path) == "Permission denied"
    file.chmod(0o755)
    assert "Exec format error" in refusal(file, tmp_path)


def test_a_program_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    file = tmp_path / "python"
    file.write_text("#!/bin/sh\necho this is no python >&2\nexit 9\n")
    file.chmod(0o755)
    assert "this is no python" in refusal(file, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("versions", "interpret", "reason"),
    [
        ({}, False, "torch is missing: pip install torch there"),
        ({"torch": "2.5.1"}, False, "torch 2.5.1 is too old: install torch 2.6 or newer there"),
        ({"torch": "2.13.0+cpu"}, False, "Triton is missing: pip install 'triton>=3.2' there"),
        (
            {"torch": "2.13.0+cpu", "triton": "3.1.0"},
            False,
            "triton 3.1.0 is too old: install triton 3.2 or newer there",
        ),
        ({"torch": "2.6.0", "triton": "3.2.0"}, True, "Triton's interpreter needs numpy: pip install numpy there"),
        (
            {"torch": "2.13.0+cpu", "triton": "3.6.0", "numpy": "2.4.1"},
            True,
            "Triton 3.6.0's interpreter breaks with numpy 2.4.1: pip install 'numpy<2.4' there",
        ),
    ],
    ids=str,
)
def test_what_is_missing_or_too_old(tmp_path: Path, versions: dict[str, str], interpret: bool, reason: str) -> None:
    assert refusal(interpreters.with_versions(tmp_path / "env", **versions), tmp_path, interpret=interpret) == reason


@pytest.mark.slow
def test_a_python_that_is_too_old_is_named(tmp_path: Path) -> None:
    python = interpreters.with_versions(tmp_path / "env", torch="2.13.0", triton="3.6.0")
    pretence = "import sys\nsys.version_info = (3, 9, 18)\n"
    (interpreters.site_packages(python) / "sitecustomize.py").write_text(pretence)
    reason = refusal(python, tmp_path)
    assert reason == "Python 3.9 is too old: choose an interpreter with Python 3.11 or newer"


@pytest.mark.slow
@pytest.mark.parametrize("triton", ["3.7.0", "4.0"])
def test_newer_versions_are_accepted(tmp_path: Path, triton: str) -> None:
    python = interpreters.with_versions(tmp_path / "env", torch="2.14.0", triton=triton, numpy="2.4.1")
    with WorkerClient(str(python), tmp_path / "worker.log", interpret=True) as client:
        environment = client.hello()
    assert (environment.torch, environment.triton, environment.gpu) == ("2.14.0", triton, "")


@pytest.mark.slow
def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    refusal(tmp_path / "nowhere", tmp_path)
    refusal(interpreters.with_versions(tmp_path / "env"), tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
