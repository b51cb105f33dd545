"""Workers of these tests see no GPU, so that verdicts are the same everywhere; ``tests/gpu`` is for those that do."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.scripted import SOFTMAX, Bench, FakeExecutor, Script
from tests.core.workshop import capture_file, make_settings

from adaexplore import optimize as module
from adaexplore.executors.local import LocalExecutor
from adaexplore.model.task import Task


@pytest.fixture(autouse=True, scope="session")
def _no_gpu() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        yield


@pytest.fixture(scope="session")
def softmax_task(_no_gpu: None, tmp_path_factory: pytest.TempPathFactory) -> Task:
    executor = LocalExecutor(make_settings(tmp_path_factory.mktemp("data")), threading.Event())
    try:
        return capture_file(executor, SOFTMAX)
    finally:
        executor.close()


@pytest.fixture
def scripted(softmax_task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Real tasks and candidates, made-up verdicts."""
    path = tmp_path / "softmax_temperature.py"
    path.write_text(SOFTMAX.read_text())
    script = Script()
    executor = type("Scripted", (FakeExecutor,), {"script": script})

    def capture(subject: Any, worker: Any, seconds: float) -> tuple[Task, bool]:
        script.phase("capture")
        return module.replace(softmax_task, path=str(path)), False

    monkeypatch.setattr(module, "LocalExecutor", executor)
    monkeypatch.setattr(module, "capture", capture)
    return Bench(script, path, tmp_path)
