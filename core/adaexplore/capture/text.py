"""Python text as lines and as a syntax tree, without running anything of it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def split_lines(source: str) -> list[str]:
    r"""Split as Python and editors count lines: at ``\n``, ``\r\n`` and ``\r``, and nowhere else.

    ``str.splitlines`` also splits at form feeds and U+2028, which shifts every line number below.
    """
    return _LINE.findall(source)


def parse_source(source: str) -> ast.Module:
    """Parse a file's text; a byte order mark is no error.

    Raises:
        SyntaxError: As Python does, also where Python has another word for it (null bytes, too deep a nesting).
    """
    text = source.removeprefix("\ufeff")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in the user's file is not ours to report
            return ast.parse(text)
    except ValueError as error:
        raise SyntaxError(str(error)) from error
    except (RecursionError, MemoryError) as error:
        raise SyntaxError("too deeply nested to parse") from error


def flat_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Give the statements of one scope in order, those inside ``if``, ``try``, ``with`` and loops included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue  # a scope of its own
        for name in ("body", "handlers", "orelse", "finalbody"):
            for inner in getattr(statement, name, ()):
                yield from flat_statements(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])
