"""The guard and gradients of an inserted kernel, checked in a process where kernels are interpreted.

Triton chooses its interpreter when it is first imported, so the checks in ``interpreted/`` cannot run in this process:
they run once, in another, and each of their functions is a test here.
"""

import ast
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from adaexplore.config import worker_environment

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).with_name("interpreted")
ROOT = Path(__file__).parents[3]


def _functions() -> list[str]:
    files = sorted(FOLDER.glob("check_*.py"))
    trees = [(file.stem, ast.parse(file.read_text())) for file in files]
    return [f"{stem}.{f.name}" for stem, tree in trees for f in tree.body
            if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")]  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Give the failures' texts by function; an empty text for a case that passed."""
    report = tmp_path_factory.mktemp("checks") / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", str(FOLDER), "-o", "python_files=check_*.py",
               "-p", "no:cacheprovider", f"--junitxml={report}"]  # fmt: skip
    environment = worker_environment({"TRITON_INTERPRET": "1"})
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rsplit('.', 1)[-1]}.{case.get('name', '').split('[')[0]}"
        text = "".join(f"{case.get('name')}:\n{child.text}\n" for child in case if child.tag in ("failure", "error"))
        found.setdefault(name, []).append(text)
    return found


@pytest.mark.parametrize("name", _functions())
def test_check(outcomes: dict[str, list[str]], name: str) -> None:
    assert outcomes[name]
    assert "".join(outcomes[name]) == ""
