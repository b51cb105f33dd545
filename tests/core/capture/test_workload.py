"""Workloads are read from the comment or the protocol; what is malformed is told with its place."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaexplore.capture.comment import DTYPES, render_comment
from adaexplore.capture.locate import find_modules, select_module
from adaexplore.capture.workload import describe_workload, workload_of
from adaexplore.errors import ConfigurationError, UsageError
from adaexplore.model.task import Literal, TensorSpec, Workload, WorkloadOrigin

FIXTURES = Path(__file__).parents[2] / "fixtures" / "modules"
CLASS = "class Net(nn.Module):\n    def forward(self, x): return x\n"


def source_with(comment: str) -> str:
    return f"from torch import nn\n{comment}\n{CLASS}"


def read(comment: str) -> Workload:
    source = source_with(comment)
    return workload_of(source, select_module(find_modules(source), "Net", Path("net.py")))


def test_reads_shapes() -> None:
    workload = read("# adaexplore: init(dim=4096, eps=1e-6) forward(x=bf16[8, 512, 4096], flag=True) mode=eval")
    assert workload == Workload(
        WorkloadOrigin.COMMENT_SHAPES,
        line=2,
        init={"dim": 4096, "eps": 1e-6},
        forward={"x": TensorSpec("bfloat16", (8, 512, 4096)), "flag": True},
        mode="eval",
    )


def test_reads_functions() -> None:
    workload = read("# adaexplore: build=make_block inputs=samples.block.make_inputs mode=train")
    assert workload == Workload(
        WorkloadOrigin.COMMENT_FUNCTIONS, 2, build="make_block", inputs="samples.block.make_inputs", mode="train"
    )


@pytest.mark.parametrize(
    ("comment", "forward"),
    [
        ("# adaexplore: forward()", {}),
        ("#adaexplore:forward(x=f32[3])", {"x": TensorSpec("float32", (3,))}),
        ("# adaexplore: forward(x=torch.bfloat16[2,3])", {"x": TensorSpec("bfloat16", (2, 3))}),
        ("# adaexplore: forward(x=f32[()], y=-2.5)", {"x": TensorSpec("float32", ()), "y": -2.5}),
        ("# adaexplore: forward(s='a ) b', n=None)  # a note", {"s": "a ) b", "n": None}),
        ("# adaexplore: forward(x=f32[4],\n# adaexplore:         y=i64[4])", {
            "x": TensorSpec("float32", (4,)), "y": TensorSpec("int64", (4,))}),
        ("# adaexplore: forward(x=f32[4])\n# What it does, in words.", {"x": TensorSpec("float32", (4,))}),
        ("# adaexplore: forward(x=f32[4])\n@decorator\n@another", {"x": TensorSpec("float32", (4,))}),
        ("@decorator\n# adaexplore: forward(x=f32[4])", {"x": TensorSpec("float32", (4,))}),
    ],
)  # fmt: skip
def test_reads_what_people_write(comment: str, forward: dict[str, object]) -> None:
    assert read(comment).forward == forward


@pytest.mark.parametrize(("name", "torch_name"), sorted(DTYPES.items()))
def test_knows_every_name_of_a_dtype(name: str, torch_name: str) -> None:
    assert read(f"# adaexplore: forward(x={name}[2])").forward == {"x": TensorSpec(torch_name, (2,))}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_comment_wins_over_get_inputs(ending: str) -> None:
    source = (source_with("# adaexplore: forward(x=f32[4])") + "def get_inputs(): return []\n").replace("\n", ending)
    (module,) = find_modules(source)
    assert module.workload == workload_of(source, module)
    assert workload_of(source, module).origin is WorkloadOrigin.COMMENT_SHAPES


@pytest.mark.parametrize(
    ("comment", "line", "column", "expected"),
    [
        ("# adaexplore:", 2, 14, "forward"),
        ("# adaexplore: shapes", 2, 15, "found 'shapes'"),
        ("# adaexplore: fordward(x=f32[4])", 2, 15, "did you mean forward"),
        ("# adaexplore: init(dim=4)", 2, 26, "forward"),
        ("# adaexplore: forward(x=f32[4]", 2, 22, "never closed"),
        ("# adaexplore: forward=4", 2, 22, "`(`"),
        ("# adaexplore: forward(f32[4])", 2, 23, "name=value"),
        ("# adaexplore: forward(**x)", 2, 23, "`**`"),
        ("# adaexplore: forward(x=f33[4])", 2, 25, "dtype"),
        ("# adaexplore: forward(x=f32[4, n])", 2, 25, "whole numbers"),
        ("# adaexplore: forward(x=f32[-4])", 2, 25, "positive"),
        ("# adaexplore: forward(x=f32[True])", 2, 25, "whole numbers"),
        ("# adaexplore: forward(x=[1, 2])", 2, 25, "found list"),
        ("# adaexplore: forward(x=open('f'))", 2, 25, "literal"),
        ("# adaexplore: forward(é='é', x=f33[4])", 2, 32, "dtype"),
        ("# adaexplore: forward(x=1, x=2)", 2, 28, "twice"),
        ("# adaexplore: forward() forward()", 2, 25, "twice"),
        ("# adaexplore: init(w=f32[4]) forward()", 2, 15, "use build="),
        ("# adaexplore: build=a", 2, 22, "inputs="),
        ("# adaexplore: inputs=a", 2, 23, "build="),
        ("# adaexplore: build=a inputs=b forward()", 2, 32, "does not go with"),
        ("# adaexplore: build=a. inputs=b", 2, 21, "name of a function"),
        ("# adaexplore: build= inputs=b", 2, 22, "a value after build="),
        ("# adaexplore: forward() mode=test", 2, 30, "mode=train or mode=eval"),
        ("# words\n# adaexplore: init(a=1)\n# adaexplore:    forward(x=1 2)", 4, None, "name=value"),
    ],
)
def test_tells_what_is_malformed_and_where(comment: str, line: int, column: int | None, expected: str) -> None:
    source = source_with(comment)
    (module,) = find_modules(source)
    assert module.workload is None
    with pytest.raises(ConfigurationError) as caught:
        workload_of(source, module)
    assert caught.value.details["key"] == f"# adaexplore: comment, line {line}"
    reason = str(caught.value.details["reason"])
    assert expected in reason
    assert column is None or reason.startswith(f"column {column}: ")
    assert "# adaexplore: init(" in caught.value.hint


def test_a_comment_further_up_is_not_the_classes() -> None:
    source = f"from torch import nn\n# adaexplore: forward(x=f32[4])\n\n{CLASS}"
    (module,) = find_modules(source)
    assert module.workload is None


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (
            "def __init__(self, dim: int, p: float, eps=1e-6): pass\n"
            "    def forward(self, x, mask: torch.Tensor, causal: bool, *, scale=None): pass",
            "# adaexplore: init(dim=4096, p=1.0) forward(x=f32[8, 512, 4096], mask=f32[8, 512, 4096], causal=True)",
        ),
        ("def forward(self, *args, key, **kwargs): pass", "# adaexplore: forward(key=f32[8, 512, 4096])"),
        ("pass", "# adaexplore: forward(x=f32[8, 512, 4096])"),
        ("def __init__(self, config: Config): pass", "# adaexplore: build=make_module inputs=make_inputs"),
    ],
)
def test_without_a_workload_the_hint_is_the_comment_to_write(methods: str, expected: str) -> None:
    source = f"import torch\nclass Net(torch.nn.Module):\n    {methods}\n"
    (module,) = find_modules(source)
    with pytest.raises(UsageError) as caught:
        workload_of(source, module)
    assert f"`{expected}`" in caught.value.hint
    written = source.replace("class Net", f"{expected}\nclass Net")
    (module,) = find_modules(written)
    assert module.workload == workload_of(written, module)


def test_describes_for_people() -> None:
    def describe(name: str) -> str:
        source = (FIXTURES / f"{name}.py").read_text(encoding="utf-8")
        (module,) = find_modules(source)
        return describe_workload(workload_of(source, module))

    assert describe("linear_silu") == (
        "x=f32[48, 128], built with features=128, hidden=352: shapes in the # adaexplore: comment, line 8"
    )
    assert describe("gelu_bias") == (
        "build=make_module inputs=make_inputs mode=eval: functions named in the # adaexplore: comment, line 8"
    )
    assert describe("kernelbench_style") == "get_inputs() in the file, line 23"


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).map(lambda name: f"p_{name}")
LITERALS: st.SearchStrategy[Literal] = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
)
SIZES = st.lists(st.integers(1, 2**40), max_size=5).map(tuple)
TENSORS = st.builds(TensorSpec, st.sampled_from(sorted(set(DTYPES.values()))), SIZES)
MODES = st.sampled_from([None, "train", "eval"])
DOTTED = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
SHAPES = st.builds(
    lambda init, forward, mode: Workload(WorkloadOrigin.COMMENT_SHAPES, 2, init=init, forward=forward, mode=mode),
    st.dictionaries(NAMES, LITERALS, max_size=3),
    st.dictionaries(NAMES, LITERALS | TENSORS, max_size=4),
    MODES,
)
FUNCTIONS = st.builds(
    lambda build, inputs, mode: Workload(
        WorkloadOrigin.COMMENT_FUNCTIONS, 2, build=build, inputs=inputs, mode=mode
    ),
    DOTTED,
    DOTTED,
    MODES,
)  # fmt: skip


@given(SHAPES | FUNCTIONS)
def test_what_is_rendered_is_read_back(workload: Workload) -> None:
    assert read(f"# adaexplore: {render_comment(workload)}") == workload


FRAGMENTS = st.sampled_from(
    ["init", "forward", "build=", "mode=", "(", ")", "[", "]", "x=", "f32[", "4", ",", "'", '"', "\\", "#", " ", "**",
     "\n# adaexplore:", "=", "1e999", "0x", "{", ":", "\t", "é", "\U0001f600"]
)  # fmt: skip


@given(st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8")) | st.lists(FRAGMENTS).map("".join))
@example("forward(x=" + "9" * 5000 + ")")
@example("forward(x=" + "(" * 3000 + ")" * 3000 + ")")
@example("forward(x=" + "-" * 5000 + "1)")
@example("forward(x='''a''')")
@example("forward(x='\\d')")
def test_arbitrary_text_is_a_workload_or_a_configuration_error(text: str) -> None:
    source = source_with(f"# adaexplore: {text}")
    (module,) = find_modules(source)
    reason = "column 1: none"
    try:
        workload = workload_of(source, module)
    except ConfigurationError as error:
        reason = str(error.details["reason"])
    else:
        assert read(f"# adaexplore: {render_comment(workload)}") == workload
    assert reason.startswith("column ")
