"""The user's file: found, read and parsed, with a sentence for everything that can be wrong with it."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from adaexplore.capture.locate import find_modules, select_module
from adaexplore.errors import UsageError
from adaexplore.model.task import ModuleClass


@dataclass(frozen=True, slots=True)
class UserModule:
    """A class of a file, as text."""

    path: Path
    """Absolute; links are not followed."""
    source: str
    module: ModuleClass


def split_target(text: str) -> tuple[Path, str | None]:
    """Split ``FILE[::NAME]``; the path becomes absolute.

    Raises:
        UsageError: The name is empty.
    """
    file, colons, name = text.rpartition("::")
    if not colons or Path(text).exists():  # a file whose name has colons
        file, name = text, ""
    elif not name:
        raise UsageError(reason=f"{text}: no class name behind the colons", hint="Write FILE::NAME, or FILE alone.")
    if not file:
        raise UsageError(reason=f"{text!r} names no file", hint="Write FILE::NAME, or FILE alone.")
    return Path(os.path.abspath(Path(file).expanduser())), name or None


def find_module(path: Path, name: str | None) -> UserModule:
    """Read ``path`` and choose the class; nothing of it is run.

    Raises:
        UsageError: The file cannot be read or parsed, or has no such class.
    """
    source = read_source(path)
    try:
        modules = find_modules(source)
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        line = (error.text or "").strip()
        raise UsageError(
            reason=f"{place}: syntax error: {error.msg}", hint=f"The line reads: {line}" if line else ""
        ) from error
    return UserModule(path, source, select_module(modules, name, path))


def read_source(path: Path) -> str:
    """Give a file's text with its own line endings.

    Raises:
        UsageError: It is not there, no file, empty, forbidden or not UTF-8.
    """
    if path.is_dir():
        raise UsageError(reason=f"{path} is a folder", hint="Name one Python file in it.")
    if not path.exists():
        raise UsageError(reason=f"no such file: {path}", hint=_near(path))
    if not path.is_file():
        raise UsageError(reason=f"{path} is not a regular file", hint="Name a Python file.")
    try:
        source = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(reason=f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        reason = f"{path} is not UTF-8 (byte {error.start})"
        raise UsageError(reason=reason, hint="Save it as UTF-8.") from error
    if not source.removeprefix("\ufeff").strip():
        raise UsageError(reason=f"{path} is empty", hint="Name a Python file with an nn.Module class.")
    return source


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder {path.parent}."
    try:
        names = [p.name for p in path.parent.glob("*.py")]
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, names, 1) or difflib.get_close_matches(f"{path.name}.py", names, 1)
    return f"Did you mean {path.with_name(close[0])}?" if close else ""
