"""The wheel holds what the packages read at run time; hatchling silently leaves out what `.gitignore` matches."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"adaexplore": ROOT / "core", "adaexplore_lsp": ROOT / "server"}


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_both_packages(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for package, source in SOURCES.items():
        expected = {
            path.relative_to(source).as_posix()
            for path in (source / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert expected - names == set()
    assert {
        "adaexplore/py.typed",
        "adaexplore_lsp/py.typed",
        "adaexplore/store/migrations/0001_initial.sql",
        "adaexplore/worker/__init__.py",
    } <= names
    assert not [name for name in names if name.startswith(("tests/", "core/", "server/", "docs/"))]
