"""What is captured with what it depends on, and what is refused with which sentence."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.workshop import make_settings

from adaexplore.capture.export import capture
from adaexplore.errors import CaptureError, ForwardFailedError, ModuleNotInstantiableError
from adaexplore.executors.local import LocalExecutor
from adaexplore.model.task import AttributeRead, InputKind, Policy, Task
from adaexplore.optimize import Request, find_subject

pytestmark = pytest.mark.slow

HEAD = """\
import dataclasses, functools, logging
from types import SimpleNamespace
import torch
from torch import nn
from torch.nn import functional as F
"""
PACKAGE = Path(__file__).with_name("package")


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalExecutor]:
    executor = LocalExecutor(make_settings(tmp_path_factory.mktemp("data")), threading.Event())
    executor.main.hello()
    yield executor
    executor.close()


class Captures:
    def __init__(self, executor: LocalExecutor, folder: Path) -> None:
        self.executor = executor
        self.folder = folder

    def file(self, path: Path, name: str = "M") -> Task:
        return capture(find_subject(Request(path, name, Policy.STRICT)), self.executor.main, 60.0)[0]

    def __call__(self, body: str, init: str = "", *, comment: str = "forward(x=f32[4, 8])", before: str = "") -> Task:
        """Capture a class ``M`` whose ``forward(self, x)`` is ``body``, or a whole ``def`` of it."""
        if not body.startswith("def "):
            body = "def forward(self, x):\n" + "\n".join(f"    {line}" for line in body.split("\n"))
        init = f"def __init__(self):\n    super().__init__()\n    {init}\n" if init else ""
        text = "\n".join(f"    {line}" for line in (init + body).split("\n"))
        path = self.folder / f"case{len(list(self.folder.iterdir()))}.py"
        path.write_text(f"{HEAD}\n{before}\n\n# adaexplore: {comment}\nclass M(nn.Module):\n{text}\n")
        return self.file(path)


@pytest.fixture
def captures(executor: LocalExecutor, tmp_path: Path) -> Captures:
    return Captures(executor, tmp_path)


def targets(task: Task) -> list[str]:
    return [o.target for o in task.graph.operators]


def reads(task: Task) -> dict[str, tuple[object, str]]:
    return {r.path: (r.value, r.how) for r in task.graph.reads}


def global_reads(task: Task) -> dict[str, object]:
    return {r.path: r.value for r in task.graph.globals_read}


# -- packages, models that contain the class, arguments


def test_a_member_of_a_package_with_relative_imports(captures: Captures, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "acme_layers")
    task = captures.file(tmp_path / "acme_layers" / "blocks" / "scale.py", "Scale")
    assert targets(task) == ["aten.mul.Tensor", "aten.mul.Tensor"]
    assert [(i.kind, i.source) for i in task.graph.inputs] == [
        (InputKind.PARAMETER, "gain"),
        (InputKind.ARGUMENT, "x"),
    ]
    assert reads(task) == {"config.factor": (3.0, "value"), "config.width": (16, "value")}
    assert global_reads(task) == {"acme_layers.settings:FLOOR": 0.5, "floor": "acme_layers.settings.floor"}
    assert task.shapes == "x=float32[5, 16]"


def test_the_class_inside_the_model_that_build_gives(captures: Captures) -> None:
    before = (
        "def b():\n    return nn.Sequential(nn.Linear(6, 8), M(), nn.Tanh())\n"
        "def i():\n    return (torch.randn(3, 6),), {}\n"
    )
    task = captures("return x * 2", comment="build=b inputs=i", before=before)
    assert (targets(task), task.shapes) == (["aten.mul.Tensor"], "x=float32[3, 8]")


def test_arguments_of_all_kinds(captures: Captures) -> None:
    task = captures(
        'def forward(self, x, y=None, n: int = 3, *, scale: float = 2.0, cap=float("inf"), name="a", z):\n'
        "    return x * scale + z",
        comment="forward(x=f32[4, 8], z=f32[4, 8], scale=0.5)",
    )
    parameters = {p.name: (p.is_tensor, p.value, p.default, p.keyword_only) for p in task.graph.parameters}
    assert parameters == {
        "x": (True, None, None, False),
        "y": (False, None, "None", False),
        "n": (False, 3, "3", False),
        "scale": (False, 0.5, "2.0", True),
        "cap": (False, float("inf"), 'float("inf")', True),
        "name": (False, "a", "'a'", True),
        "z": (True, None, None, True),
    }


# -- what forward reads


def test_attributes_of_all_kinds(captures: Captures) -> None:
    task = captures(
        "if self.flag:\n    x = self.act(x)\n"
        "return x.to(self.dtype) * self.eps + self.table['a'] + self.sizes[0] + (1 if self.nothing is None else 0)",
        "self.flag, self.act, self.dtype, self.eps = True, F.relu, torch.float32, 1e-5\n"
        "    self.table, self.sizes, self.nothing = {'a': 1}, [3, 4], None",
    )
    assert reads(task) == {
        "flag": (True, "value"),
        "act": ("torch.nn.functional.relu", "name"),
        "dtype": ("torch.float32", "text"),
        "eps": (1e-5, "value"),
        "table": ("{'a': 1}", "text"),
        "sizes": ((3, 4), "value"),
        "nothing": (None, "value"),
    }


def test_attributes_of_submodules_and_what_is_not_there(captures: Captures) -> None:
    task = captures(
        "if hasattr(self, 'adapter'):\n    x = self.adapter(x)\nreturn self.blocks[0](x) * (2 if self.training else 3)",
        "self.blocks = nn.ModuleList([nn.LayerNorm(8, bias=False)])",
    )
    found = reads(task)
    assert found["adapter"] == (None, "absent")
    assert found["training"] == (True, "value")
    assert found["blocks.0.bias"] == (None, "value")
    assert found["blocks.0.eps"] == (1e-5, "value")
    assert dict(task.graph.submodules)["blocks"] == "torch.nn.modules.container.ModuleList"


def test_fields_of_configuration_objects(captures: Captures) -> None:
    before = "@dataclasses.dataclass\nclass Options:\n    scale: float = 2.0\n    kind: type = nn.Linear\n"
    task = captures("return x * self.options.scale", "self.options = Options()", before=before)
    assert reads(task) == {
        "options.scale": (2.0, "value"),
        "options.kind": ("torch.nn.modules.linear.Linear", "name"),
    }


def test_globals_of_the_file_by_the_functions_that_run(captures: Captures) -> None:
    before = (
        "A, B, UNUSED, eps = 2.0, (1, 2), object(), 5\nC = SimpleNamespace(d=4.0)\nT = {'k': 3}\n"
        "log = logging.getLogger(__name__)\n"
        "def helper(x):\n    log.debug('seen')\n    return x * A + C.d + T['k']\n"
        "def other():\n    return UNUSED\n"
    )
    task = captures("return helper(x) + B[0] + self.eps", "self.eps = 1.0", before=before)
    assert global_reads(task) == {"A": 2.0, "C.d": 4.0, "T": "{'k': 3}", "B": (1, 2), "helper": ".helper"}
    assert reads(task)["eps"] == (1.0, "value")


def test_reads_are_data_that_survive_the_way_to_the_task(captures: Captures) -> None:
    task = captures("return x * self.scale", "self.scale = float('inf')")
    assert task.graph.reads == (AttributeRead("scale", float("inf"), "value"),)


# -- sizes


def test_relations_between_sizes(captures: Captures) -> None:
    task = captures("return x * 2 if x.shape[0] > 2 else x * 3")
    (symbol,) = [s.name for s in task.graph.symbols if s.dim == 0]
    assert task.graph.size_relations == (f"{symbol} > 2",)


@pytest.mark.parametrize("body", ["return x * 2 if x.shape[0] == 1 else x * 3", "return x.squeeze(0) * 2",
                                  "if x.shape[0] < 2:\n    raise ValueError\nreturn x * 2"])  # fmt: skip
def test_a_size_of_one_that_takes_another_course_is_seen(captures: Captures, body: str) -> None:
    task = captures(body)
    assert task.graph.size_relations == (f"{next(s.name for s in task.graph.symbols if s.dim == 0)} > 1",)


@pytest.mark.parametrize("body", ["return x * 2", "return F.softmax(x, -1)", "return x - x.mean(-1, keepdim=True)",
                                  "return (x @ x.transpose(-1, -2)).sum(0)", "return x.reshape(-1) * 2"])  # fmt: skip
def test_a_size_of_one_that_takes_the_same_course_is_admitted(captures: Captures, body: str) -> None:
    assert captures(body).graph.size_relations == ()


def test_a_size_that_a_weight_fixes_is_no_symbol(captures: Captures) -> None:
    task = captures("return x * self.w", "self.w = nn.Parameter(torch.ones(8))")
    (argument,) = [i for i in task.graph.inputs if i.kind is InputKind.ARGUMENT]
    assert (argument.shape[1], [s.dim for s in task.graph.symbols]) == (8, [0])


# -- refusals

REFUSED = {
    "changes running_mean": ("return self.bn(x)", "self.bn = nn.BatchNorm1d(8)", "changes bn.running_mean in place"),
    "assigns": ("self.calls += 1\nreturn x * 2", "self.calls = 0", "forward assigns self.calls"),
    "assigns a buffer": (
        "self.n = self.n + 1\nreturn x * self.n",
        "self.register_buffer('n', torch.zeros(1))",
        "forward assigns self.n",
    ),
    "changes an input": ("return x.mul_(2)", "", "changes x in place"),
    "tensor constant": ("return x * torch.tensor([2.0])", "", "creates a constant tensor"),
    "tensor attribute": ("return x * self.t", "self.t = torch.ones(8)", "creates a constant tensor"),
    "branch on values": ("return x * 2 if x.sum() > 0 else x", "", "what forward does depends on values of tensors"),
    "item": ("return x * x.max().item()", "", "makes a Python number of a tensor's value"),
    "nonzero": ("return x[x > 0] * 2", "", "a tensor's size depends on values of another"),
    "complex": ("return torch.fft.rfft(x).abs()", "", "it computes with complex numbers"),
    "dict output": ("return {'y': x * 2}", "", "forward returns something else than a tensor"),
    "no output": ("x * 2", "", "forward returns something else than a tensor"),
    "nothing computed": ("return x", "", "forward computes nothing"),
    "lambda": (
        "return self.act(x)",
        "self.act = lambda x: x * 2",
        "forward reads self.act (a function without a name of its own)",
    ),
    "partial": (
        "return self.act(x)",
        "self.act = functools.partial(F.gelu, approximate='tanh')",
        "forward reads self.act (a partial)",
    ),
    "object": ("return x * self.o.k", "self.o = type('O', (), {'k': 2})()", "forward reads self.o (a O)"),
    "hooks": (
        "return self.l(x)",
        "self.l = nn.Linear(8, 8); self.l.register_forward_hook(lambda m, a, o: o)",
        "self.l has hooks",
    ),
    "star": ("def forward(self, *x):\n    return x[0] * 2", "", "forward takes *x"),
    "two stars": ("def forward(self, x, **more):\n    return x * 2", "", "forward takes *more"),
}


@pytest.mark.parametrize(("body", "init", "sentence"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_captured_is_refused(captures: Captures, body: str, init: str, sentence: str) -> None:
    with pytest.raises(CaptureError) as caught:
        captures(body, init)
    assert sentence in str(caught.value)
    assert "case0.py" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("{'a': torch.ones(2)}", "argument x of forward is a dict"),
        ("[torch.ones(2)]", "argument x of forward is a list"),
        ("torch.ones(2, dtype=torch.complex64)", "complex"),
        ("3", "forward takes no tensor"),
    ],
)
def test_arguments_that_are_no_tensors_or_literals(captures: Captures, value: str, sentence: str) -> None:
    before = f"def b():\n    return M()\ndef i():\n    return ({value},), {{}}\n"
    with pytest.raises(CaptureError) as caught:
        captures("return x * 2", comment="build=b inputs=i", before=before)
    assert sentence in str(caught.value)


def test_inputs_are_taken_by_name_whatever_their_order(captures: Captures) -> None:
    comment = "forward(c=f32[3], a=f32[1], b=f32[2])"
    task = captures("def forward(self, a, b, *, c):\n    return a * 2 + b.sum() + c.mean()", comment=comment)
    assert [(i.source, i.shape[0]) for i in task.graph.inputs if isinstance(i.shape[0], int)] == [("a", 1)]
    assert [(s.input, s.hint) for s in task.graph.symbols] == [("b", 2), ("c", 3)]


@pytest.mark.parametrize(
    ("kind", "body", "init", "sentence"),
    [
        (ForwardFailedError, "return x @ x", "", "M.forward raised RuntimeError: mat1 and mat2"),
        (ForwardFailedError, "raise OSError('no')", "", "M.forward raised OSError: no (case0.py:12)"),
        (ModuleNotInstantiableError, "return x", "raise OSError('no')", "building M raised OSError: no (case0.py:13)"),
        (ForwardFailedError, "raise SystemExit(2)", "", "M.forward raised SystemExit: 2"),
        (
            ForwardFailedError,
            "def forward(self, y):\n    return y",
            "",
            "raised TypeError: missing a required",
        ),
        (ModuleNotInstantiableError, "return x", "import sys; sys.exit(1)", "building M raised SystemExit"),
    ],
)
def test_the_users_errors_are_told_with_their_line(
    captures: Captures, kind: type[Exception], body: str, init: str, sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        captures(body, init)
    assert sentence in str(caught.value)


def test_a_process_that_ends_or_hangs_is_told(captures: Captures, executor: LocalExecutor) -> None:
    with pytest.raises(CaptureError, match="ended the process"):
        captures("return x * 2", before="import os\nos._exit(3)")
    subject = find_subject(Request(captures.folder / "case0.py", "M", Policy.STRICT))
    subject.path.write_text("import time\ntime.sleep(1000)\n")
    executor.main.hello()
    with pytest.raises(CaptureError, match="took more than 1 s"):
        capture(subject, executor.main, 1.0)
    assert targets(captures("return x * 2")) == ["aten.mul.Tensor"]
