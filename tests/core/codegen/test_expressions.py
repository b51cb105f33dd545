"""Templates are filled with as few parentheses as the meaning allows."""

import ast
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.codegen.expressions import LONGEST_LINE, filled, literal_text, split_long
from adaexplore.codegen.operators import HELPERS, POINTWISE


@pytest.mark.parametrize(
    ("template", "texts", "expected"),
    [
        ("{0} + {1}", ["x * y", "z"], "x * y + z"),
        ("{0} * {1}", ["x + y", "z"], "(x + y) * z"),
        ("{0} * {1}", ["x", "y * z"], "x * (y * z)"),
        ("{0} * {1}", ["x * y", "z"], "x * y * z"),
        ("{0} - {1}", ["x", "y - z"], "x - (y - z)"),
        ("{0} - {1}", ["x - y", "z"], "x - y - z"),
        ("{0} / {1}", ["x", "y * z"], "x / (y * z)"),
        ("-{0}", ["x + y"], "-(x + y)"),
        ("-{0}", ["x"], "-x"),
        ("tl.exp({0})", ["x + y"], "tl.exp(x + y)"),
        ("tl.where({0}, {1}, {2})", ["x < y", "-1.0", "x + y"], "tl.where(x < y, -1.0, x + y)"),
        ("{0}.to(tl.float32)", ["x + y"], "(x + y).to(tl.float32)"),
        ("{0}.to(tl.float32)", ["tl.exp(x)"], "tl.exp(x).to(tl.float32)"),
        ("{0} < {1}", ["x < y", "z"], "(x < y) < z"),
        ("{0} & {1}", ["x < y", "z"], "(x < y) & z"),
        ("{0} * tl.sigmoid({0})", ["x + y"], "(x + y) * tl.sigmoid(x + y)"),
        ("{0}", ["x + y"], "x + y"),
        ("{0} + {1}", ["x", "-1e-06"], "x + -1e-06"),
        ("tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", ["a * b", "c"],
         "tl.maximum(a * b, c, propagate_nan=tl.PropagateNan.ALL)"),
    ],
)  # fmt: skip
def test_filled(template: str, texts: list[str], expected: str) -> None:
    assert filled(template, texts) == expected


TEMPLATES = [t for t in POINTWISE.values() if "@" not in t]
LEAVES = st.sampled_from(["x", "y", "1.5", "-2.0", "float('inf')", "tl.load(p + cols)"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda template, texts: filled(template, texts),
        st.sampled_from(TEMPLATES),
        st.lists(inner, min_size=3, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(template=st.sampled_from(TEMPLATES), texts=st.lists(EXPRESSIONS, min_size=3, max_size=3))
def test_parentheses_never_change_the_meaning(template: str, texts: list[str]) -> None:
    safe = re.sub(r"\{(\d)\}", lambda m: f"({texts[int(m[1])]})", template)
    assert ast.dump(ast.parse(filled(template, texts))) == ast.dump(ast.parse(safe))


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_use_each_operand_from_the_first_on(template: str) -> None:
    used = sorted({int(n) for n in re.findall(r"\{(\d)\}", template)})
    assert used == list(range(len(used)))
    ast.parse(filled(template, ["x", "y", "z"]), mode="eval")


@pytest.mark.parametrize("name", HELPERS)
def test_helpers_are_functions(name: str) -> None:
    body = "\n".join(f"    {line}" for line in HELPERS[name])
    (function,) = ast.parse(f"def helper(x, a, b):\n{body}").body
    assert isinstance(function, ast.FunctionDef)
    assert isinstance(function.body[-1], ast.Return)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("inf"), 'float("inf")'),
        (-float("inf"), '-float("inf")'),
        (float("nan"), 'float("nan")'),
        (-1.5, "-1.5"),
        (1e-6, "1e-06"),
        (3, "3"),
        (True, "True"),
        (0.1, "0.1"),
    ],
)
def test_literals(value: float, expected: str) -> None:
    assert literal_text(value) == expected


def test_only_long_lines_are_split() -> None:
    assert split_long("    x = tl.load(p)") == ["    x = tl.load(p)"]
    assert split_long("    ") == [""]
    arguments = ", ".join(f"argument_{n}" for n in itertools.islice(itertools.count(), 9))
    long = f"    value = tl.load({arguments}).to(tl.float32)"
    assert len(long) > LONGEST_LINE
    lines = split_long(long)
    assert lines == ["    value = tl.load(", f"        {arguments}", "    ).to(tl.float32)"]
    comment = "    # " + "word (" * 40
    assert split_long(comment) == [comment.rstrip()]
