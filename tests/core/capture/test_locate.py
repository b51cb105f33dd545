"""Modules are found by their syntax, under any alias, and chosen by name."""

from pathlib import Path

import pytest

from adaexplore.capture.locate import class_source, find_modules, select_module
from adaexplore.errors import UsageError
from adaexplore.model.identity import source_hash
from adaexplore.model.task import ModuleClass, WorkloadOrigin

FIXTURES = Path(__file__).parents[2] / "fixtures" / "modules"


def names(source: str) -> list[str]:
    return [module.name for module in find_modules(source)]


def only(source: str) -> ModuleClass:
    (module,) = find_modules(source)
    return module


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch", "torch.nn.Module"),
        ("import torch.nn", "torch.nn.Module"),
        ("import torch as t", "t.nn.Module"),
        ("import torch.nn as nn", "nn.Module"),
        ("from torch import nn", "nn.Module"),
        ("from torch import nn as layers", "layers.Module"),
        ("from torch.nn import Module", "Module"),
        ("from torch.nn import Module as Base", "Base"),
        ("from torch.nn.modules import Module", "Module"),
        ("from torch.nn.modules.module import Module", "Module"),
        ("from torch.nn import *", "Module"),
        ("from torch import nn\nBase = nn.Module", "Base"),
        ("from torch import nn\nBase: type = nn.Module", "Base"),
        ("from torch import nn", "nn.Linear"),
        ("from torch import nn", "Mixin, nn.Module"),
        ("from torch import nn", "nn.Module, Generic[T]"),
        ("from torch import nn\nclass _B(nn.Linear, Generic[T]): pass", "_B[int]"),
        ("try:\n    from torch.nn import RMSNorm\nexcept ImportError:\n    from .compat import RMSNorm", "RMSNorm"),
        ("if True:\n    import torch.nn as nn", "nn.Module"),
    ],
)
def test_finds_a_module_under_any_alias(imports: str, base: str) -> None:
    assert names(f"{imports}\n\nclass Net({base}):\n    pass\n")[-1:] == ["Net"]


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch", "torch.nn.Parameter"),
        ("import torch", "torch.Module"),
        ("import torch", "torch.nn.functional.Module"),
        ("from flax import linen as nn", "nn.Module"),
        ("from .nn import Module", "Module"),
        ("from torch import nn\nnn = object()", "nn.Module"),
        ("from torch.nn import Module\nclass Module: pass", "Module"),
        ("from torch.nn import *", "Exception"),
        ("", "nn.Module"),
        ("", "make_base()"),
    ],
)
def test_leaves_other_classes_alone(imports: str, base: str) -> None:
    assert names(f"{imports}\n\nclass Net({base}):\n    pass\n") == []


NESTED = """\
import torch.nn as nn

class Plain:
    class Inner(nn.Module):
        class Deep(nn.Module):
            pass
    class Heir(Inner):
        pass

class Outside(Plain.Inner.Deep):
    pass

class Base(Inner):
    pass

if True:
    class Conditional(nn.Module): pass
else:
    class Otherwise(nn.Module): pass
try:
    class Tried(nn.Module): pass
except ImportError:
    class Caught(nn.Module): pass
finally:
    class Last(nn.Module): pass

def make():
    class Hidden(nn.Module): pass
    return Hidden
"""


def test_finds_nested_and_conditional_classes_and_those_that_inherit_in_the_file() -> None:
    assert names(NESTED) == [
        *("Plain.Inner", "Plain.Inner.Deep", "Plain.Heir", "Outside"),
        *("Conditional", "Otherwise", "Tried", "Caught", "Last"),
    ]


def test_tells_lines_and_indent() -> None:
    source = (
        "from torch import nn\n"
        "class Outer:\n"
        "\t@(\n"
        "\t\tfirst)\n"
        "\t@second\n"
        "\tclass Inner(nn.Module):\n"
        "\t\tdef forward(self, x):\n"
        "\t\t\treturn x\n"
        "after = 1\n"
    )
    inner = only(source)
    assert (inner.first_line, inner.class_line, inner.end_line) == (3, 6, 8)
    assert inner.indent == "\t"
    assert inner.has_forward
    assert inner.replacement_line is None


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_counts_lines_as_python_does(ending: str) -> None:
    text = ["\ufefffrom torch import nn", "odd = '\u2028 \x0b \x1c'", "\x0c", "class Net(nn.Module):", "    pass"]
    net = only(ending.join(text))
    assert (net.class_line, net.end_line) == (4, 5)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def forward(self, x): return x", True),
        ("forward = None", True),
        ("if True:\n        def forward(self, x): return x", True),
        ("def forward_all(self, x): return x", False),
        ("class Inner:\n        def forward(self): pass", False),
    ],
)
def test_tells_whether_the_class_defines_forward(body: str, expected: bool) -> None:
    assert only(f"from torch import nn\nclass Net(nn.Module):\n    {body}\n").has_forward is expected


@pytest.mark.parametrize(
    ("decorators", "line"),
    [
        (["@a", '@__import__("m_triton").t  # adaexplore: 2x vs eager'], 3),
        (["@__import__(", '    "m_triton"', ").t  # adaexplore: 2x vs eager", "@a"], 2),
        (["@t  #adaexplore: x"], 2),
        (["@t  # another comment"], None),
        (["@t('# adaexplore: in a string')"], None),
        (["@t", "# adaexplore: forward(x=f32[4])"], None),
    ],
)
def test_finds_our_decorator(decorators: list[str], line: int | None) -> None:
    source = "\n".join(["from torch import nn", *decorators, "class Net(nn.Module):", "    pass"])
    assert only(source).replacement_line == line


@pytest.mark.parametrize("source", ["class (", "\0", "def f(:\n", "(" * 5000])
def test_a_file_that_does_not_parse_is_a_syntax_error(source: str) -> None:
    with pytest.raises(SyntaxError):
        find_modules(source)


def test_the_files_warnings_are_not_ours() -> None:
    assert names("from torch import nn\nx = '\\d'\nclass Net(nn.Module): pass") == ["Net"]


def test_every_fixture_has_one_module_with_a_workload() -> None:
    found = {path.stem: find_modules(path.read_text(encoding="utf-8")) for path in FIXTURES.glob("*.py")}
    assert len(found) >= 10
    for name, modules in found.items():
        assert len(modules) == 1, name
        assert modules[0].workload is not None, name
        assert modules[0].has_forward, name


TWO = "from torch import nn\nclass First(nn.Module): pass\nclass Model(nn.Module): pass\n"
PATH = Path("model.py")


def test_selects_by_name_and_by_the_last_part_of_a_nested_name() -> None:
    modules = find_modules(NESTED)
    assert select_module(modules, "Plain.Heir", PATH).name == "Plain.Heir"
    assert select_module(modules, "Deep", PATH).name == "Plain.Inner.Deep"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from torch import nn\nclass Only(nn.Module): pass\n", "Only"),
        (TWO.replace("class First", "# adaexplore: forward()\nclass First"), "First"),
        (f"{TWO}def get_inputs(): return []\n", "Model"),
        (f"{TWO}def get_inputs(): return []\n".replace("class First", "# adaexplore: forward()\nclass First"), "Model"),
    ],
)
def test_selects_the_obvious_one_without_a_name(source: str, expected: str) -> None:
    assert select_module(find_modules(source), None, PATH).name == expected


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("x = 1\n", None, ["no nn.Module class", "model.py"]),
        (TWO, None, ["several", "model.py::First", "model.py::Model"]),
        (TWO, "Modle", ["Modle", "Did you mean Model?", "First, Model"]),
        (TWO + "class Model(nn.Module): pass\n", "Model", ["lines 3, 4"]),
    ],
)
def test_refuses_with_what_to_do(source: str, name: str | None, expected: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        select_module(find_modules(source), name, PATH)
    text = f"{caught.value} {caught.value.hint}"
    assert [part for part in expected if part not in text] == []


def test_get_inputs_belongs_to_the_only_class_or_to_model() -> None:
    protocol = "def get_inputs(): return []\n"
    (only_one,) = find_modules(f"from torch import nn\nclass Net(nn.Module): pass\n{protocol}")
    assert only_one.workload is not None
    assert only_one.workload.origin is WorkloadOrigin.KERNELBENCH
    assert only_one.workload.line == 3
    first, model = find_modules(TWO + protocol)
    assert first.workload is None
    assert model.workload is not None


def test_the_hash_of_a_class_is_blind_to_its_decorators_and_place() -> None:
    plain = "class Inner(nn.Module):\n    def forward(self, x):\n        return x\n"
    moved = "".join(f"    {line}\n" for line in plain.splitlines())
    top = f"from torch import nn\n{plain}"
    nested = f"from torch import nn\nclass Outer:\n    @decorator\n{moved}"
    changed = top.replace("return x", "return x + 1")
    hashes = [source_hash(class_source(source, only(source))) for source in (top, nested, changed)]
    assert hashes[0] == hashes[1] != hashes[2]
