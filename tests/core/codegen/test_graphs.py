"""The stored graphs are what this torch captures."""

from pathlib import Path

import pytest

from .capture_graphs import FIXTURES, FOLDER, to_stored
from .laboratory import MODULES, classes, compiling


def test_each_fixture_has_its_graph() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(FIXTURES)


@pytest.mark.slow
def test_stored_graphs_are_captured_again(tmp_path: Path) -> None:
    laboratory = compiling(tmp_path)
    try:
        for name in FIXTURES:
            ((path, class_name),) = classes(MODULES / f"{name}.py")
            stored = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
            assert to_stored(laboratory.capture(path, class_name)) == stored, f"run {FOLDER.parent}/capture_graphs.py"
    finally:
        laboratory.worker.kill()
