"""The text of a section: the candidate's source, the guard and the decorator, and nothing that it need not say."""

import ast
from dataclasses import replace

from tests.core.workshop import make_candidate

from adaexplore.model.task import (
    ForwardParameter,
    Graph,
    GraphInput,
    InputKind,
    Policy,
    Task,
    TaskId,
    TensorSpec,
    Workload,
    WorkloadOrigin,
)
from adaexplore.replacement.section import render_code

SOURCE = """\
import os, sys
import torch
import triton
import triton.language as tl
import math


@triton.jit
def m_kernel():
    import torch


def m_forward(module, x, scale, *, cap):
    return x
"""


def tensor(name: str, kind: InputKind, source: str, dtype: str = "float32", *, grad: bool = False) -> GraphInput:
    return GraphInput(name, kind, source, (8,), dtype, contiguous=True, requires_grad=grad)


TASK = Task(
    TaskId("t"), "/user/m.py", "M", "hash",
    Workload(WorkloadOrigin.COMMENT_SHAPES, 1, forward={"x": TensorSpec("float32", (8,))}),
    Policy.STRICT,
    Graph(
        inputs=(
            tensor("p_weight", InputKind.PARAMETER, "norm.weight", grad=True),
            tensor("p_frozen", InputKind.PARAMETER, "frozen"),
            tensor("b_offset", InputKind.BUFFER, "offset"),
            tensor("x", InputKind.ARGUMENT, "x"),
            tensor("index", InputKind.ARGUMENT, "index", "int64"),
        ),
        operators=(), outputs=("x",), output_structure="tensor", symbols=(),
        parameters=(
            ForwardParameter("x", True, None, None),
            ForwardParameter("scale", False, 2.0, "1.0"),
            ForwardParameter("cap", False, float("inf"), 'float("inf")', keyword_only=True),
            ForwardParameter("index", True, None, None, keyword_only=True),
        ),
        reads=(), submodules=(),
    ),
    {},
)  # fmt: skip


def code(**params: object) -> str:
    text = render_code(TASK, make_candidate(SOURCE, **params))
    ast.parse(text)
    return text


def test_only_imports_that_the_header_lacks_are_kept() -> None:
    text = code()
    assert text.startswith("import math\n")
    assert "    import torch\n" in text  # inside a function: not ours to judge
    assert text.count("import torch") == 1


def test_the_decorated_forward_takes_what_the_original_takes() -> None:
    text = code()
    assert 'def forward(self, x, scale=1.0, *, cap=float("inf"), index):' in text
    assert "return original(self, x, scale, cap=cap, index=index)" in text
    assert "return m_forward(self, x, scale, cap=cap, index=index)" in text


def test_gradients_are_asked_for_all_floats() -> None:
    text = code()
    # frozen weights may be set free later, and buffers must not change before the backward
    floats = ("x", "self.norm.weight", "self.frozen", "self.offset")
    asked = " or ".join(f"{name}.requires_grad" for name in floats)
    assert f"if torch.is_grad_enabled() and ({asked}):" in text
    assert '[(ctx.module.norm, "weight"), (ctx.module, "frozen"), (ctx.module, "offset")], weights' in text


def test_a_candidates_own_conditions_are_asked() -> None:
    asked = code(conditions=["s0 > 1"], call_conditions=("x.stride(0) % 16 == 0",))
    assert "        and s0 > 1\n" in asked
    assert "        and _holds(lambda: x.stride(0) % 16 == 0)\n" in asked


def test_a_module_without_trained_weights_never_asks_for_them() -> None:
    inputs = tuple(i for i in TASK.graph.inputs if i.kind is InputKind.ARGUMENT and i.dtype == "int64")
    parameters = tuple(p for p in TASK.graph.parameters if p.name == "index")
    task = replace(TASK, graph=replace(TASK.graph, inputs=inputs, parameters=parameters))
    assert "if torch.is_grad_enabled() and (False):" in render_code(task, make_candidate(SOURCE))
