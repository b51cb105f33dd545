"""The ``# adaexplore:`` comment above a class: from text to a Workload and back.

The comment names either shapes or functions::

    # adaexplore: init(dim=4096, eps=1e-6) forward(x=bf16[8, 512, 4096], flag=True) mode=eval
    # adaexplore: build=make_block inputs=layers.samples.make_inputs mode=train

It may continue over several ``# adaexplore:`` lines. Values are Python literals, read with ``ast`` and never
evaluated; a tensor is a dtype with its sizes in brackets, ``f32[()]`` where it has no dimensions.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.errors import ConfigurationError
from adaexplore.model.task import Literal, TensorSpec, Workload, WorkloadOrigin

DTYPES = {
    "f32": "float32", "fp32": "float32", "float32": "float32", "float": "float32",
    "f16": "float16", "fp16": "float16", "float16": "float16", "half": "float16",
    "bf16": "bfloat16", "bfloat16": "bfloat16",
    "f64": "float64", "fp64": "float64", "float64": "float64", "double": "float64",
    "i64": "int64", "int64": "int64", "long": "int64",
    "i32": "int32", "int32": "int32", "int": "int32",
    "i16": "int16", "int16": "int16",
    "i8": "int8", "int8": "int8",
    "u8": "uint8", "uint8": "uint8",
    "bool": "bool",
}  # fmt: skip
"""Accepted names to torch's names; the first name of each is the one we write."""

EXAMPLES = (
    "Write shapes, `# adaexplore: init(dim=4096) forward(x=bf16[8, 512, 4096]) mode=eval`, "
    "or functions, `# adaexplore: build=make_module inputs=make_inputs`."
)

_WRITTEN = {torch_name: name for name, torch_name in reversed(DTYPES.items())}
_PREFIX = re.compile(r"[ \t\f]*#[ \t]*adaexplore:")
_SPACE = re.compile(r"(?:[\s,;]|#[^\n]*)*")
_ITEM = re.compile(r"([^\W\d]\w*)[ \t]*([=(]?)[ \t]*")
_WORD = re.compile(r"[^\s,;#=]*")
_PIECE = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\#[^\n]*|.""", re.DOTALL)
_CALLS = ("init", "forward")
_WORDS = ("build", "inputs", "mode")
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Comment:
    """The text of the comment, its prefixes blanked so that columns stay those of the file."""

    line: int
    """1-based line of its first ``# adaexplore:``."""
    text: str
    """Lines joined by ``\\n``; what is not ours among them is empty."""

    def fault(self, position: int, reason: str) -> ConfigurationError:
        """Give the error for what stands at ``position`` of ``text``."""
        before = self.text[:position]
        column = position - (before.rfind("\n") + 1) + 1
        key = f"# adaexplore: comment, line {self.line + before.count(chr(10))}"
        return ConfigurationError(key=key, reason=f"column {column}: {reason}", hint=EXAMPLES)


def comment_above(lines: Sequence[str], line: int) -> Comment | None:
    """Find the ``# adaexplore:`` comment in the block of comments that ends directly above ``line`` (1-based)."""
    start = line - 1
    while start > 0 and lines[start - 1].lstrip(" \t\f\ufeff").startswith("#"):
        start -= 1
    blanked = [_blank_prefix(text.rstrip("\r\n")) for text in lines[start : line - 1]]
    while blanked and blanked[0] is None:
        blanked.pop(0)
        start += 1
    return Comment(start + 1, "\n".join(text or "" for text in blanked)) if blanked else None


def parse_comment(comment: Comment) -> Workload:
    """Read the comment.

    Raises:
        ConfigurationError: It is malformed; names line and column, and what was expected there.
    """
    items = _read_items(comment)
    end = len(comment.text.rstrip()) or len(comment.text)
    if "build" in items or "inputs" in items:
        for name in _CALLS:
            if name in items:
                raise comment.fault(items[name].start, f"{name}(…) does not go with build= and inputs=")
        for name, other in (("build", "inputs"), ("inputs", "build")):
            if name not in items:
                raise comment.fault(end, f"expected {name}=, which {other}= needs beside it")
        origin = WorkloadOrigin.COMMENT_FUNCTIONS
    else:
        if "forward" not in items:
            raise comment.fault(end, "expected forward(…) with shapes, or build= and inputs=")
        origin = WorkloadOrigin.COMMENT_SHAPES
    words = {name: _read_word(comment, name, items[name]) for name in _WORDS if name in items}
    init = {}
    for name, value in (_read_call(comment, items["init"]) if "init" in items else {}).items():
        if isinstance(value, TensorSpec):
            raise comment.fault(items["init"].start, f"init takes literals, and {name} is a tensor; use build=")
        init[name] = value
    forward = _read_call(comment, items["forward"]) if "forward" in items else {}
    return Workload(origin, comment.line, init=init, forward=forward, **words)


def render_comment(workload: Workload) -> str:
    """Give what stands behind ``# adaexplore:`` for ``workload``; empty for one that comes from no comment."""
    if workload.origin is WorkloadOrigin.KERNELBENCH:
        return ""
    if workload.origin is WorkloadOrigin.COMMENT_FUNCTIONS:
        parts = [f"build={workload.build}", f"inputs={workload.inputs}"]
    else:
        parts = [f"init({render_arguments(workload.init)})"] if workload.init else []
        parts.append(f"forward({render_arguments(workload.forward)})")
    return " ".join(parts + ([f"mode={workload.mode}"] if workload.mode else []))


def render_arguments(values: dict[str, TensorSpec | Literal] | dict[str, Literal]) -> str:
    """Give ``x=bf16[8, 4096], flag=True``."""
    return ", ".join(f"{name}={_render_value(value)}" for name, value in values.items())


@dataclass(frozen=True, slots=True)
class _Item:
    """One part of the comment: ``name(…)`` or ``name=value``."""

    start: int
    value: int
    """Where the value begins; for a call, the same as ``start``."""
    text: str
    """The value; for a call, all of it."""


def _blank_prefix(line: str) -> str | None:
    match = _PREFIX.match(line)
    return " " * match.end() + line[match.end() :] if match else None


def _read_items(comment: Comment) -> dict[str, _Item]:
    text, items, position = comment.text, dict[str, _Item](), 0
    while (position := _skip_space(text, position)) < len(text):
        match = _ITEM.match(text, position)
        name = match.group(1) if match else text[position]
        if match is None or name not in (*_CALLS, *_WORDS):
            close = difflib.get_close_matches(name, (*_CALLS, *_WORDS), 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise comment.fault(
                position, f"expected init(…), forward(…), build=, inputs= or mode=, found {name!r}{meant}"
            )
        if name in items:
            raise comment.fault(position, f"{name} is given twice")
        wanted = "(" if name in _CALLS else "="
        if match.group(2) != wanted:
            raise comment.fault(match.end(1), f"expected `{wanted}` after {name}")
        if wanted == "(":
            value, end = position, _closing_bracket(comment, match.start(2))
        else:
            value = match.end()
            end = _match_end(_WORD, text, value)
            if text.startswith("=", end):
                raise comment.fault(value, f"expected a value after {name}=")
        items[name] = _Item(position, value, text[value:end])
        position = end
    return items


def _skip_space(text: str, position: int) -> int:
    return _match_end(_SPACE, text, position)


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _closing_bracket(comment: Comment, start: int) -> int:
    """Give the position behind the bracket that closes the one at ``start``; strings and notes are skipped."""
    depth = 0
    for piece in _PIECE.finditer(comment.text, start):
        if piece.group() in tuple("([{"):
            depth += 1
        elif piece.group() in tuple(")]}"):
            depth -= 1
            if depth == 0:
                return piece.end()
    raise comment.fault(start, "this `(` is never closed")


def _read_word(comment: Comment, name: str, item: _Item) -> str:
    word = item.text
    if name == "mode":
        if word not in ("train", "eval"):
            raise comment.fault(item.value, f"expected mode=train or mode=eval, found {word!r}")
    elif not all(part.isidentifier() and not keyword.iskeyword(part) for part in word.split(".")):
        raise comment.fault(item.value, f"expected the name of a function, dotted names allowed, found {word!r}")
    return word


def _read_call(comment: Comment, item: _Item) -> dict[str, TensorSpec | Literal]:
    values: dict[str, TensorSpec | Literal] = {}
    call = _parse_call(comment, item)
    if call.args:
        position = _node_position(item, call.args[0])
        raise comment.fault(position, "expected name=value: every argument is named")
    for argument in call.keywords:
        position = _node_position(item, argument)
        if argument.arg is None:
            raise comment.fault(position, "expected name=value, found `**`")
        if argument.arg in values:
            raise comment.fault(position, f"{argument.arg} is given twice")
        try:
            values[argument.arg] = _read_value(argument.value)
        except ValueError as error:
            raise comment.fault(_node_position(item, argument.value), str(error)) from None
    return values


def _parse_call(comment: Comment, item: _Item) -> ast.Call:
    position, reason = item.start, "not Python's syntax for arguments"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings
            call = ast.parse(item.text, mode="eval").body
    except SyntaxError as error:
        position = _position(item, error.lineno or 1, max((error.offset or 1) - 1, 0))
        reason = error.msg
    except (ValueError, RecursionError, MemoryError):
        pass
    else:
        if isinstance(call, ast.Call):
            return call
    raise comment.fault(position, f"{reason}; expected name=value, name=value …")


def _node_position(item: _Item, node: ast.expr | ast.keyword) -> int:
    line = item.text.split("\n")[node.lineno - 1]
    return _position(item, node.lineno, len(line.encode()[: node.col_offset].decode(errors="ignore")))


def _position(item: _Item, line: int, column: int) -> int:
    """Turn a line (1-based) and a column of the item's text into a position of the comment's text."""
    lines = item.text.split("\n")
    line = min(line, len(lines))
    return item.start + sum(len(text) + 1 for text in lines[: line - 1]) + min(column, len(lines[line - 1]))


def _read_value(node: ast.expr) -> TensorSpec | Literal:
    if isinstance(node, ast.Subscript):
        return TensorSpec(_read_dtype(node.value), _read_shape(node.slice))
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise ValueError("expected a tensor such as bf16[8, 512, 4096], or a literal") from None
    if value is None or isinstance(value, float | str) or (isinstance(value, int) and value in _INT64):
        return value
    kind = type(value).__name__
    raise ValueError(f"expected a number, a string, True, False or None, found {kind}; use build= and inputs= for more")


def _read_dtype(node: ast.expr) -> str:
    is_torch = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch"
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) and is_torch else ""
    if name not in DTYPES:
        known = ", ".join(dict.fromkeys(_WRITTEN[torch_name] for torch_name in DTYPES.values()))
        raise ValueError(f"expected a dtype ({known}) before `[`, found {name or 'something else'!r}")
    return DTYPES[name]


def _read_shape(node: ast.expr) -> tuple[int, ...]:
    try:
        shape = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        shape = None
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not all(type(size) is int and 0 < size < _INT64.stop for size in sizes):
        raise ValueError("expected sizes that are positive whole numbers, such as [8, 512, 4096]")
    return sizes


def _render_value(value: TensorSpec | Literal) -> str:
    if isinstance(value, TensorSpec):
        shape = ", ".join(map(str, value.shape)) or "()"
        return f"{_WRITTEN.get(value.dtype, value.dtype)}[{shape}]"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"  # Python has no literal for it
    return repr(value)
