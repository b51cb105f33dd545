"""Triton expressions as text: literals, templates with their operands, and lines that are too long."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence

from adaexplore.model.task import Literal

LONGEST_LINE = 120
_COMPARISON, _UNARY, _ATOM = 0, 6, 7
_LEVELS: dict[type[ast.operator], int] = {
    ast.BitOr: 1, ast.BitXor: 2, ast.BitAnd: 3, ast.Add: 4, ast.Sub: 4, ast.Mult: 5, ast.Div: 5, ast.FloorDiv: 5,
    ast.Mod: 5,
}  # fmt: skip
"""How tightly Python's operators bind."""
_MARK = re.compile(r"_(\d)_")


def literal_text(value: Literal) -> str:
    """Give a literal as Triton source."""
    if isinstance(value, float) and math.isinf(value):
        return 'float("inf")' if value > 0 else '-float("inf")'
    if isinstance(value, float) and math.isnan(value):
        return 'float("nan")'
    return repr(value)


def filled(template: str, texts: Sequence[str]) -> str:
    """Fill ``{0}``, ``{1}`` … of an expression, with parentheses only where the meaning needs them."""
    marked = re.sub(r"\{(\d)\}", r"_\1_", template)
    tree = ast.parse(marked, mode="eval")
    for mark, least in sorted(_marks(tree), key=lambda found: found[0].col_offset, reverse=True):
        text = texts[int(mark.id[1:-1])]
        if _level(ast.parse(text, mode="eval").body) < least:
            text = f"({text})"
        marked = marked[: mark.col_offset] + text + marked[mark.end_col_offset :]
    return marked


def _level(node: ast.expr) -> int:
    if isinstance(node, ast.BinOp):
        return _LEVELS[type(node.op)]
    if isinstance(node, ast.Compare):
        return _COMPARISON
    return _UNARY if isinstance(node, ast.UnaryOp) else _ATOM


def _marks(tree: ast.Expression) -> Iterator[tuple[ast.Name, int]]:
    """Give each placeholder with the level that its text must have at least to stand there as it is."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.Name) and _MARK.fullmatch(child.id):
                    yield child, _least(parent, field)


def _least(parent: ast.AST, field: str) -> int:
    if isinstance(parent, ast.BinOp):
        return _LEVELS[type(parent.op)] + (field == "right")  # they group to the left
    if isinstance(parent, ast.Compare):
        return _COMPARISON + 1
    if isinstance(parent, (ast.Call, ast.keyword)) and field != "func" or isinstance(parent, ast.Expression):
        return _COMPARISON
    return _ATOM


def split_long(line: str) -> list[str]:
    """Break a line that is too long inside its outermost call; give others as they are."""
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= LONGEST_LINE or line.lstrip().startswith("#"):
        return [line.rstrip()]
    start = line.index("(") + 1
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(line[end], 0)
        end += 1
    return [line[:start], f"{indent}    {line[start : end - 1]}", f"{indent}{line[end - 1 :]}"]
