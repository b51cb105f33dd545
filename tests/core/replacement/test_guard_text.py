"""The guard's text: which condition stands for what the capture saw."""

import ast
import math

import pytest

from adaexplore.model.task import AttributeRead, ForwardParameter, Graph, GraphInput, InputKind, Symbol
from adaexplore.replacement.guard import render_guard

X = GraphInput("x", InputKind.ARGUMENT, "x", ("s0", "2*s0", 8), "float32", contiguous=True)
W = GraphInput("p_w", InputKind.PARAMETER, "layers.0.weight", (8,), "float32", contiguous=True, requires_grad=True)


def guard(**changes: object) -> str:
    values: dict[str, object] = {
        "inputs": (X, W),
        "operators": (),
        "outputs": (),
        "output_structure": "tensor",
        "symbols": (Symbol("s0", "x", 0, 4),),
        "parameters": (ForwardParameter("x", True, None, None), ForwardParameter("scale", False, 2.0, "1.0")),
        "reads": (),
        "submodules": (("layers", "torch.nn.modules.container.Sequential"), ("layers.0", "torch.nn.Linear")),
    }
    text = render_guard(Graph(**(values | changes)), "m", ["s0 > 3"])  # type: ignore[arg-type]
    ast.parse(text)
    return text


def test_a_guard_reads_well() -> None:
    assert guard(reads=(AttributeRead("eps", 1e-5),), size_relations=("s0 % 4 == 0",)) == (
        "def _m_unchanged(module, names):\n"
        '    """Tell whether everything that the module reads beside tensors is what it was when verified."""\n'
        "    return (\n"
        "        torch.get_default_dtype() is torch.float32\n"
        "        and not torch.nn.modules.module._has_any_global_hook()\n"
        '        and _is_bare(module.layers, "torch.nn.modules.container.Sequential")\n'
        "        and tuple(module.layers._modules) == ('0',)\n"
        '        and _is_bare(module.layers[0], "torch.nn.Linear")\n'
        "        and _is_same(module.eps, 1e-05)\n"
        "    )\n"
        "\n\n"
        "def _m_accepts(module, names, x, scale):\n"
        '    """Tell whether the verified kernel applies to this call."""\n'
        "    if type(x) not in (torch.Tensor, torch.nn.Parameter):\n"
        "        return False\n"
        "    device = x.device\n"
        "    return (\n"
        "        _may_launch(device)\n"
        "        and _m_unchanged(module, names)\n"
        "        and _is_same(scale, 2.0)\n"
        "        and _is_plain(x, torch.float32, device)\n"
        "        and x.dim() == 3\n"
        "        and x.shape[0] > 0\n"
        "        and x.shape[1] == 2*x.shape[0]\n"
        "        and x.shape[2] == 8\n"
        "        and _has_rows(x)\n"
        "        and _is_plain(module.layers[0].weight, torch.float32, device)\n"
        "        and module.layers[0].weight.shape == (8,)\n"
        "        and module.layers[0].weight.is_contiguous()\n"
        "        and _holds(lambda: x.shape[0] % 4 == 0)\n"
        "        and x.shape[0] > 3\n"
        "    )"
    )


@pytest.mark.parametrize(
    ("read", "condition"),
    [
        (AttributeRead("a", None), "module.a is None"),
        (AttributeRead("a", value=True), "module.a is True"),
        (AttributeRead("a", 1), "_is_same(module.a, 1)"),
        (AttributeRead("a", math.inf), '_is_same(module.a, float("inf"))'),
        (AttributeRead("a", "it's"), '_is_same(module.a, "it\'s")'),
        (AttributeRead("a", (1, -math.inf)), '_are_same(module.a, (1, float("-inf"),))'),
        (AttributeRead("a", ()), "_are_same(module.a, ())"),
        (AttributeRead("a.b", "torch.float32", "text"), "str(module.a.b) == 'torch.float32'"),
        (AttributeRead("a", "torch.nn.functional.relu", "name"), '_is_named(module.a, "torch.nn.functional.relu")'),
        (AttributeRead("adapter", None, "absent"), 'not hasattr(module, "adapter")'),
        (AttributeRead("a.1.adapter", None, "absent"), 'not hasattr(module.a[1], "adapter")'),
    ],
    ids=str,
)
def test_attributes(read: AttributeRead, condition: str) -> None:
    assert f"        and {condition}\n" in guard(reads=(read,))


@pytest.mark.parametrize(
    ("path", "condition"),
    [
        ("EPS", '_is_same(names.get("EPS"), 1.0)'),
        ("CFG.eps", '_is_same(_global(names, "CFG.eps"), 1.0)'),
        ("acme.ops:EPS", '_is_same(_global(names, "acme.ops:EPS"), 1.0)'),
    ],
)
def test_globals(path: str, condition: str) -> None:
    assert f"        and {condition}\n" in guard(globals_read=(AttributeRead(path, 1.0),))


def test_symbols_are_replaced_as_whole_names() -> None:
    inputs = (GraphInput("x", InputKind.ARGUMENT, "x", ("s1", "s10"), "float32", contiguous=False),)
    symbols = (Symbol("s1", "x", 0, 4), Symbol("s10", "x", 1, 5))
    text = guard(inputs=inputs, symbols=symbols, size_relations=("s1 + s10 > 7", "s10 != s1"), submodules=())
    assert "x.shape[0] + x.shape[1] > 7" in text
    assert "x.shape[1] != x.shape[0]" in text
