"""Values are named after what the user's lines call them."""

import pytest

from adaexplore.codegen.naming import Names, access

from .building import Builder


def name_of(line: str) -> str:
    """Give the name of a value that the source line computes."""
    b = Builder({7: line})
    x = b.argument("x", 4)
    made = b.op("exp", x, shape=(4,), line=7)
    task = b.task(b.op("neg", made, shape=(4,), line=8))
    return Names(task, b.lowered(b.op("neg", made, shape=(4,), line=8)))[made.name]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("        hidden = torch.exp(x)", "hidden"),
        ("        hidden: torch.Tensor = torch.exp(x)", "hidden"),
        ("        hidden += torch.exp(x)", "hidden"),
        ("        hidden *= x", "hidden"),
        ("hidden=x", "hidden"),
        ("        a, b = torch.exp(x), x", "exps"),
        ("        self.hidden = torch.exp(x)", "exps"),
        ("        hidden == torch.exp(x)", "exps"),
        ("        return torch.exp(x)", "exps"),
        ("        mask = torch.exp(x)", "mask_value"),
        ("        tl = torch.exp(x)", "tl_value"),
        ("        n_rows = torch.exp(x)", "n_rows_value"),
        ("        x = torch.exp(x)", "x_2"),
    ],
)
def test_names_come_from_assignments(line: str, expected: str) -> None:
    assert name_of(line) == expected


def test_the_last_value_of_a_line_gets_its_name() -> None:
    b = Builder({7: "    y = torch.exp(x) * 2"})
    x = b.argument("x", 4)
    inner = b.op("exp", x, shape=(4,), line=7)
    outer = b.op("mul", inner, 2, shape=(4,), line=7)
    result = b.op("neg", outer, shape=(4,))
    names = Names(b.task(result), b.lowered(result))
    assert (names[inner.name], names[outer.name]) == ("exps", "y")


def test_a_name_assigned_twice_is_numbered() -> None:
    b = Builder({7: "    x = torch.exp(x)", 8: "    x = -x"})
    x = b.argument("x", 4)
    first = b.op("exp", x, shape=(4,), line=7)
    second = b.op("neg", first, shape=(4,), line=8)
    names = Names(b.task(second), b.lowered(second))
    assert (names["x"], names[first.name], names[second.name]) == ("x", "x_2", "x_3")


def test_an_output_without_a_name_is_out() -> None:
    b = Builder({7: "    return torch.exp(x)"})
    x = b.argument("x", 4)
    out = b.op("exp", x, shape=(4,), line=7)
    assert Names(b.task(out), b.lowered(out))[out.name] == "out"


def test_arguments_keep_their_names_outside() -> None:
    b = Builder()
    mask, n_rows = b.argument("mask", 4), b.argument("n_rows", 4)
    out = b.op("add", mask, n_rows, shape=(4,))
    names = Names(b.task(out), b.lowered(out))
    assert (names["mask"], names.outside("mask")) == ("mask_value", "mask")
    assert (names["n_rows"], names.outside("n_rows")) == ("n_rows_value", "n_rows_value")
    assert names.renamed == {"n_rows_value": "n_rows"}


def test_weights_of_one_name_are_told_apart_by_their_path() -> None:
    b = Builder()
    first, second, bias = b.parameter("up.weight", 4), b.parameter("down.weight", 4), b.parameter("up.bias", 4)
    out = b.op("add", b.op("mul", first, second, shape=(4,)), bias, shape=(4,))
    names = Names(b.task(out), b.lowered(out))
    assert [names[r.name] for r in (first, second, bias)] == ["up_weight", "down_weight", "bias"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("weight", "module.weight"),
        ("layers.0.weight", "module.layers[0].weight"),
        ("heads.a-b.bias", 'module.heads._modules["a-b"].bias'),
    ],
)
def test_paths_below_a_module(path: str, text: str) -> None:
    assert access(path) == text
