"""The inserted file beside the plain one, both imported, with the kernel's launches counted.

These files run in a process of their own with ``TRITON_INTERPRET=1`` (see ``test_guard.py`` in the folder above).
"""

import importlib.util
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from tests.core.workshop import capture_file, make_candidate, make_settings, render

from adaexplore.capture.locate import find_modules
from adaexplore.executors.local import LocalExecutor
from adaexplore.model.task import Task
from adaexplore.replacement.insert import apply_edit, plan_insertion
from adaexplore.replacement.receipt import Receipt, Section, function_name
from adaexplore.replacement.section import render_code
from adaexplore.worker.candidates import Launches, _Recorded

FOLDER = Path(__file__).parent


def import_from(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@dataclass
class Inserted:
    """The user's file with the kernel in use (``ours``) and without (``plain``), and what is launched."""

    path: Path
    task: Task
    ours: ModuleType
    plain: ModuleType
    launches: Launches

    def pair(self) -> tuple[Any, Any]:
        """Give two equal modules: with the kernel and without."""
        ours, plain = self.ours.Mixed(24), self.plain.Mixed(24)
        ours.load_state_dict(plain.state_dict())
        return ours, plain

    def launched(self, call: Callable[[], Any]) -> tuple[Any, int]:
        before = self.launches.count
        result = call()
        return result, self.launches.count - before


@pytest.fixture(scope="session")
def inserted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inserted]:
    folder = tmp_path_factory.mktemp("user")
    path = folder / "subject.py"
    shutil.copy(FOLDER / "subject.py", path)
    executor = LocalExecutor(make_settings(folder / "data"), threading.Event())
    try:
        task = capture_file(executor, path, "Mixed")
    finally:
        executor.close()
    source = path.read_text()
    candidate = make_candidate((FOLDER / "subject_kernel.py").read_text())
    assert "mixed_kernel" in render(task, candidate)
    receipt = Receipt(task.source_hash, task.id, candidate.id, "run", "2026-12-01", "strict", task.shapes,
                      "2", "3", "interpreter", 0.0, 0.0, 0.0, 0.0)  # fmt: skip
    section = Section("Mixed", function_name("Mixed"), render_code(task, candidate), receipt)
    module = next(m for m in find_modules(source) if m.name == "Mixed")
    plan = plan_insertion(source, path, module, section, None)
    plain = import_from(path, "subject_plain")
    plan.sidecar_path.write_text(plan.sidecar_text)
    path.write_text(apply_edit(source, plan.edit))
    sys.path.insert(0, str(folder))
    ours = import_from(path, "subject")
    sidecar = sys.modules["subject_triton"]
    launches = Launches()
    sidecar.mixed_kernel = _Recorded("mixed_kernel", sidecar.mixed_kernel, launches)  # type: ignore[attr-defined]
    yield Inserted(path, task, ours, plain, launches)
    sys.path.remove(str(folder))


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(4, 6, 24)


@pytest.fixture
def y() -> torch.Tensor:
    return torch.randn(4, 6, 24)
