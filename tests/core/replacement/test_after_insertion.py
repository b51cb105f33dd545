"""What changes after a kernel was inserted is noticed: the file's text, and every value that forward reads.

One file of small classes is optimized and inserted as a user would; then one process, with kernels interpreted, changes
something for each and asks whether the module still computes what its own forward computes.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from adaexplore.capture.locate import find_modules
from adaexplore.config import load_settings, worker_environment
from adaexplore.errors import CaptureError
from adaexplore.model.events import RunFinished
from adaexplore.model.task import Policy
from adaexplore.optimize import Request, optimize
from adaexplore.replacement.insert import apply_edit, plan_insertion
from adaexplore.replacement.section import render_section
from adaexplore.store.in_memory import InMemoryStore

pytestmark = pytest.mark.slow

HEAD = """\
import os
import time
from dataclasses import dataclass, field

import torch
from torch import nn

import settings_of_mine


class Hyper:
    scale = 2.0


@dataclass
class Inner:
    eps: float = 0.5


@dataclass
class Config:
    inner: Inner = field(default_factory=Inner)


class Record:
    last = None


ACT = torch.relu


def helper(x):
    return torch.relu(x) * 2


def make(n):
    def scaled(x):
        return x * n
    return scaled


by_three = make(3.0)
"""
ACCEPTED = {
    "Namespace": "return torch.relu(x) * Hyper.scale",
    "SettingsModule": "return torch.relu(x) * settings_of_mine.SCALE",
    "Nested": "return torch.relu(x) + self.config.inner.eps",
    "GlobalFunction": "return ACT(x) * 2 + 1",
    "Helper": "return helper(x) + 1",
    "Edited": "return torch.relu(x) + 1",
    "Frozen": "return torch.relu(x) * self.weight + self.offset",
    "Hooked": "return self.norm(x) * 2",
    "Layout": "return x * 2 if x.is_contiguous() else x * 3",
}
REFUSED = {
    "Clock": ("return torch.relu(x) * time.time()", "time.time"),
    "Surroundings": ("return x * float(os.environ.get('SCALE', '2'))", "os.environ"),
    "Closure": ("return by_three(x)", "n (a variable of an enclosing function)"),
    "Gradient": ("return x * 2 if x.requires_grad else x * 3", "requires_grad"),
    "SideEffect": ("y = x * 2\n        Record.last = y\n        return y", "forward assigns Record.last"),
    "Size": ("return x * (x.shape[0] ** 0.5)", "sizes"),
}
INIT = """\
        super().__init__()
        self.config = Config()
        self.weight = nn.Parameter(torch.full((8,), 2.0), requires_grad=False)
        self.register_buffer("offset", torch.full((8,), 0.5))
        self.norm = nn.LayerNorm(8)
"""
CHANGES = """
import importlib.util, json, sys, warnings, torch
warnings.simplefilter("always")
folder, edited = sys.argv[1:]
sys.path.insert(0, folder)
import zoo, zoo_triton, settings_of_mine
from torch import nn
launches = []
for name in [n for n in vars(zoo_triton) if n.endswith("_kernel")]:
    kernel = getattr(zoo_triton, name)
    class Counted:
        def __init__(self, kernel): self.kernel = kernel
        def __getitem__(self, grid): launches.append(1); return self.kernel[grid]
    setattr(zoo_triton, name, Counted(kernel))
x = torch.randn(4, 8)
def runs(module, *args):
    before = len(launches); got = module(*args); launched = len(launches) > before
    want = type(module).forward.__wrapped__(module, *args)
    return launched, bool(torch.allclose(got, want))
found = {}
for name in sys.argv[2].split(","):
    found[name] = runs(getattr(zoo, name)(), x)
zoo.Hyper.scale = 5.0; found["Namespace changed"] = runs(zoo.Namespace(), x)
settings_of_mine.SCALE = 7.0; found["SettingsModule changed"] = runs(zoo.SettingsModule(), x)
m = zoo.Nested(); m.config.inner.eps = 3.0; found["Nested changed"] = runs(m, x)
zoo.ACT = torch.sigmoid; found["GlobalFunction changed"] = runs(zoo.GlobalFunction(), x)
old = zoo.helper; zoo.helper = lambda x: x * 100; found["Helper changed"] = runs(zoo.Helper(), x); zoo.helper = old
found["Layout changed"] = runs(zoo.Layout(), torch.randn(4, 16)[:, :8])
handle = nn.modules.module.register_module_forward_hook(lambda m, a, o: o * 10 if isinstance(m, nn.LayerNorm) else None)
found["Hooked changed"] = runs(zoo.Hooked(), x); handle.remove()
m = zoo.Frozen(); m.requires_grad_(True); y = m(x); y.sum().backward()
found["Frozen set free"] = (y.requires_grad, bool(torch.allclose(m.weight.grad, torch.relu(x).sum(0))))
m = zoo.Frozen(); z = x.clone().requires_grad_(); y = m(z).sum(); m.offset.mul_(10)
try: y.backward(); message = ""
except RuntimeError as error: message = str(error)
found["buffer changed before backward"] = (bool(message), "modified by an inplace operation" in message)
torch.set_default_dtype(torch.float64); found["default dtype changed"] = runs(zoo.Edited(), x)
torch.set_default_dtype(torch.float32)
print(json.dumps(found))
"""


def class_text(name: str, body: str) -> str:
    comment = "# adaexplore: forward(x=f32[4, 8])"
    head = f"\n\n{comment}\nclass {name}(nn.Module):\n    def __init__(self):\n{INIT}\n"
    return f"{head}    def forward(self, x):\n        {body}\n"


def write(folder: Path, classes: dict[str, str]) -> Path:
    (folder / "settings_of_mine.py").write_text("SCALE = 2.0\n")
    path = folder / "zoo.py"
    path.write_text(HEAD + "".join(class_text(name, body) for name, body in classes.items()))
    return path


def insert(path: Path, name: str, data: Path) -> None:
    store = InMemoryStore()
    settings = load_settings({"ADAEXPLORE_DATA_DIR": str(data)})
    events = list(optimize(Request(path, name, Policy.USER, steps=1), settings, store, threading.Event()))
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert finished.outcome == "verified", finished.message
    run = store.list_runs()[0]
    source = path.read_text()
    module = next(m for m in find_modules(source) if m.name == name)
    sidecar = path.with_name("zoo_triton.py")
    existing = sidecar.read_text() if sidecar.exists() else None
    plan = plan_insertion(source, path, module, render_section(run, store.steps(run.id)[0], None), existing)
    sidecar.write_text(plan.sidecar_text)
    path.write_text(apply_edit(source, plan.edit))


def run_python(program: str, *arguments: str) -> tuple[dict[str, list[bool]], str]:
    command = [sys.executable, "-c", program, *arguments]
    environment = worker_environment({"TRITON_INTERPRET": "1"})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture(scope="module")
def inserted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    path = write(folder, ACCEPTED)
    for name in ACCEPTED:
        insert(path, name, folder / "data")
    return path


def test_values_that_change_after_insertion_are_noticed(inserted: Path) -> None:
    found, _ = run_python(CHANGES, str(inserted.parent), ",".join(ACCEPTED))
    for name in ACCEPTED:
        assert found.pop(name) == [True, True], name
    assert found.pop("Frozen set free") == [True, True]
    assert found.pop("buffer changed before backward") == [True, True]
    assert found == dict.fromkeys(found, [False, True])


SHOW = """
import importlib.util, json, sys, warnings, torch
warnings.simplefilter("always")
found = {}
for file in sys.argv[1:]:
    sys.path.insert(0, __import__("os").path.dirname(file))
for file in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("zoo_in_" + file.replace("/", "_").replace(".", "_"), file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
    m = module.Edited(); x = torch.ones(4, 8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = m(x)
    found[file] = [float(got[0, 0]), sum("has changed since" in str(w.message) for w in caught)]
print(json.dumps(found))
"""


def test_a_text_that_changes_after_insertion_is_noticed(inserted: Path, tmp_path: Path) -> None:
    for file in inserted.parent.glob("*.py"):
        (tmp_path / file.name).write_text(file.read_text())
    path = tmp_path / "zoo.py"
    found, _ = run_python(SHOW, str(path))
    assert found == {str(path): [2.0, 0]}
    path.write_text(path.read_text().replace("return torch.relu(x) + 1\n", "return torch.relu(x) + 100\n"))
    found, _ = run_python(SHOW, str(path))
    assert found == {str(path): [101.0, 1]}


def test_sidecars_of_one_name_serve_their_own_files(inserted: Path, tmp_path: Path) -> None:
    path = write(tmp_path, {"Edited": "return torch.relu(x) + 7"})
    insert(path, "Edited", tmp_path / "data")
    found, _ = run_python(SHOW, str(inserted), str(path))
    assert found == {str(inserted): [2.0, 0], str(path): [8.0, 0]}


def test_a_file_run_as_a_script_runs_its_kernel(inserted: Path) -> None:
    program = (
        "import runpy, sys, json, torch\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import zoo_triton\n"
        "seen = []\n"
        "kernel = zoo_triton.helper_kernel\n"
        "class Counted:\n    def __getitem__(self, grid): seen.append(1); return kernel[grid]\n"
        "zoo_triton.helper_kernel = Counted()\n"
        "names = runpy.run_path(sys.argv[1] + '/zoo.py', run_name='__main__')\n"
        "names['Helper']()(torch.ones(4, 8))\n"
        "print(json.dumps({'launches': len(seen)}))\n"
    )
    assert run_python(program, str(inserted.parent))[0] == {"launches": 1}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_go_unnoticed_is_refused(name: str, tmp_path: Path) -> None:
    body, sentence = REFUSED[name]
    path = write(tmp_path, {name: body})
    settings = load_settings({"ADAEXPLORE_DATA_DIR": str(tmp_path / "data")})
    with pytest.raises(CaptureError, match=r"zoo\.py:\d+") as caught:
        list(optimize(Request(path, name, Policy.USER, steps=1), settings, InMemoryStore(), threading.Event()))
    assert sentence in str(caught.value)
