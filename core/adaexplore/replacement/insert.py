"""Put a kernel to use: the sidecar's text, and the one line that enters the user's file."""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from adaexplore.errors import UsageError
from adaexplore.model.task import ModuleClass
from adaexplore.replacement.receipt import Section, summarize
from adaexplore.replacement.sidecar import put_section, sidecar_path

_BOM = "\ufeff"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ENDS_IN_OUR_COMMENT = re.compile(r"#[ \t]*adaexplore:[^\r\n]*[\r\n]*$")


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Whole lines of the user's file to be replaced by others."""

    first_line: int
    """1-based; where lines are only added, they come above it."""
    removed: int
    """Number of lines."""
    text: str
    """The lines instead, each with its ending; empty where lines are only removed."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """What to write so that a class uses its kernel. The sidecar goes first: the line imports it."""

    sidecar_path: Path
    sidecar_text: str
    edit: LineEdit


def apply_edit(source: str, edit: LineEdit) -> str:
    """Give ``source`` with ``edit`` done; every other byte stays, line endings and a byte order mark included."""
    mark = _BOM if source.startswith(_BOM) else ""
    lines = split_lines(source[len(mark) :])
    start = edit.first_line - 1
    return mark + "".join([*lines[:start], edit.text, *lines[start + edit.removed :]])


def plan_insertion(
    source: str, path: Path, module: ModuleClass, section: Section, existing_sidecar: str | None
) -> Insertion:
    """Plan to put ``section`` to use for ``module``; one that is there already is replaced.

    The line becomes the topmost decorator: decorators apply from the bottom, so it sees the finished class.

    Args:
        source: The user's file, as it is now.
        path: Where that file is; it is not read.
        module: As found in ``source``.
        section: For the same class.
        existing_sidecar: The sidecar's text as it is now; None where there is none.

    Raises:
        UsageError: The sidecar is not ours or was edited, or the class stands where no line can be added.
    """
    assert section.class_name == module.name
    sidecar_text = put_section(existing_sidecar, section, path)
    lines = split_lines(source)
    kept: list[str] = []
    removed = 0
    if module.replacement_line is not None:
        kept = lines[module.first_line - 1 : module.replacement_line - 1]
        removed = len(kept) + replacement_length(lines, module)
    line = module.indent + _decorator(path, section) + _line_ending(lines, module.class_line)
    edit = LineEdit(module.first_line, removed, "".join([line, *kept]))
    if not _parses(apply_edit(source, edit)):
        raise UsageError(
            reason=f"{path}:{module.class_line}: no decorator fits above {module.name} here",
            hint="Start `class` on a line of its own, and try again.",
        )
    return Insertion(sidecar_path(path), sidecar_text, edit)


def replacement_length(lines: list[str], module: ModuleClass) -> int:
    """Count the lines of our decorator: one as we wrote it, more where a formatter has wrapped it."""
    assert module.replacement_line is not None
    for number in range(module.replacement_line, module.class_line):
        if _ENDS_IN_OUR_COMMENT.search(lines[number - 1]):
            return number - module.replacement_line + 1
    return 1


def split_lines(source: str) -> list[str]:
    r"""Split as Python and editors count lines: at ``\n``, ``\r\n`` and ``\r``, and nowhere else."""
    return _LINE.findall(source)


def _decorator(path: Path, section: Section) -> str:
    """Give the line.

    One form serves a script, a top-level module, and a module of a package or of a namespace package: which one it is
    shows only at run time, in ``__spec__`` (``None`` in a script; ``__package__`` is going away in Python 3.15).
    """
    name = json.dumps(sidecar_path(path).stem, ensure_ascii=False)
    level = "bool(__spec__ and __spec__.parent)"
    load = f'__import__({name}, globals(), None, ["{section.function}"], {level})'
    return f"@{load}.{section.function}  # adaexplore: {summarize(section.receipt)}"


def _line_ending(lines: list[str], class_line: int) -> str:
    for line in (lines[class_line - 1], *lines):
        ending = line[len(line.rstrip("\r\n")) :]
        if ending:
            return ending
    return "\n"


def _parses(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in the user's file is not ours to report
            ast.parse(source.removeprefix(_BOM))
    except SyntaxError:
        return False
    return True
