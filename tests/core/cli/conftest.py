from collections.abc import Callable
from pathlib import Path

import pytest

from adaexplore.cli import main

from .fakes import MODULE, FakeEngine, make_context

Run = Callable[..., int]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def module_file(tmp_path: Path) -> Path:
    path = tmp_path / "twice.py"
    path.write_text(MODULE)
    return path


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def run(engine: FakeEngine, data_dir: Path) -> Run:
    """Give ``main`` with the fake engine."""
    return lambda *arguments: main([str(argument) for argument in arguments], make_context(engine, data_dir))
