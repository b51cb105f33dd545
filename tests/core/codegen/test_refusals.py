"""A module outside the families is refused with its operator and line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaexplore.errors import UnsupportedOperatorError
from adaexplore.proposers.builtin import BuiltinProposer

from .laboratory import MODULES, Laboratory, classes, compiling, subject_of

REFUSED = MODULES / "refused" / "operators.py"


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    laboratory = compiling(tmp_path_factory.mktemp("laboratory"))
    yield laboratory
    laboratory.worker.kill()


def marked(path: Path, name: str) -> tuple[int, str]:
    """Give line and operator of the class's ``# refused:`` comment."""
    module = subject_of(path, name).module
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [n for n in range(module.class_line, module.end_line + 1) if "# refused: " in lines[n - 1]]
    return found[0], lines[found[0] - 1].rpartition("# refused: ")[2]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), classes(REFUSED), ids=[name for _, name in classes(REFUSED)])
def test_operator_and_line_are_named(laboratory: Laboratory, path: Path, name: str) -> None:
    task = laboratory.capture(path, name)
    line, operator = marked(path, name)
    with pytest.raises(UnsupportedOperatorError) as caught:
        BuiltinProposer(task, allow_tf32=False)
    details = caught.value.details
    assert details["line"] == line
    assert operator in str(details["operator"])
    assert details["path"] == str(path)
    assert details["reason"]
    assert caught.value.hint
