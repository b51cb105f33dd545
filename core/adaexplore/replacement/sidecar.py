"""The text of a sidecar: a header, and one section a class, put in, replaced and taken out by name."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from adaexplore.errors import UsageError
from adaexplore.model.identity import short_hash
from adaexplore.replacement.receipt import Receipt, Section, function_name, parse_receipt, render_receipt

MARKER = "# adaexplore-sidecar: format 1"
_CHECKSUM = re.compile(r"#   checksum: \w+\n", re.ASCII)
_SECTION = re.compile(
    r"^# --- adaexplore: (?P<name>[\w.]+) ---\n(?P<body>.*?)^# --- end of (?P=name) ---(?:\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


def sidecar_path(path: Path) -> Path:
    """Give ``model_triton.py`` beside ``model.py``."""
    return path.with_name(f"{path.stem}_triton.py")


def parse_receipts(sidecar_text: str) -> dict[str, Receipt]:
    """Give the receipt of each section by class name; a receipt that was changed is left out."""
    found = {}
    for match in _SECTION.finditer(_unix(sidecar_text)):
        receipt = parse_receipt(match["body"])
        if receipt is not None:
            found[match["name"]] = receipt
    return found


def put_section(existing: str | None, section: Section, path: Path) -> str:
    """Give the sidecar of ``path`` with ``section`` in it, in place of the class's former section if there is one.

    Raises:
        UsageError: The file is not ours, the former section was edited, or another class's decorator has that name.
    """
    rendered = _render_section(section)
    if existing is None or not existing.strip():
        return f"{header(path)}\n\n{rendered}"
    text = _checked(existing, path)
    for match in _SECTION.finditer(text):
        if match["name"] != section.class_name and function_name(match["name"]) == section.function:
            raise UsageError(
                reason=f"{sidecar_path(path)}: {match['name']} and {section.class_name} both need {section.function}",
                hint="Rename one of the classes.",
            )
    old = _find(text, section.class_name, path)
    if old is not None:
        text = text[: old.start()] + rendered + text[old.end() :]
    else:
        text = text.rstrip("\n") + "\n\n\n" + rendered
    return _like(existing, text)


def take_section(existing: str, class_name: str, path: Path) -> str | None:
    """Give the sidecar without the class's section; None where nothing but our header would be left.

    Raises:
        UsageError: The file is not ours, or the section was edited.
    """
    text = _checked(existing, path)
    old = _find(text, class_name, path)
    if old is not None:
        before, after = text[: old.start()].rstrip("\n"), text[old.end() :]
        text = before + ("\n" if not after.strip("\n") else "\n\n\n" + after.lstrip("\n"))
    if _trimmed(text) == _trimmed(header(path)):
        return None
    return _like(existing, text)


def header(path: Path) -> str:
    """Give the head of the sidecar of ``path``: its marker, imports, and what all guards share."""
    template = resources.files(__package__).joinpath("sidecar_header.py.txt").read_text(encoding="utf-8")
    # In a docstring: a quote or backslash in a file's name must not end or change it.
    return template.replace("{module}", re.sub(r'[\\"\r\n]', "_", path.name))


def _render_section(section: Section) -> str:
    receipt, code = render_receipt(section.receipt), section.text.strip("\n") + "\n"
    checksum = short_hash("section", _trimmed(f"{receipt}\n{code}"))
    return (
        f"# --- adaexplore: {section.class_name} ---\n{receipt}#   checksum: {checksum}\n\n"
        f"{code}# --- end of {section.class_name} ---\n"
    )


def _checked(existing: str, path: Path) -> str:
    text = _unix(existing)
    if MARKER not in text.split("\n"):
        raise UsageError(
            reason=f"{sidecar_path(path)} was not written by adaexplore, and is left as it is",
            hint="Move or rename it, and try again.",
        )
    return text


def _find(text: str, class_name: str, path: Path) -> re.Match[str] | None:
    """Find the class's section.

    Raises:
        UsageError: It is not as we wrote it.
    """
    begin, end = f"# --- adaexplore: {class_name} ---", f"# --- end of {class_name} ---"
    match = next((m for m in _SECTION.finditer(text) if m["name"] == class_name), None)
    if match is None:
        pristine = begin not in text and end not in text
    else:
        body = match["body"]
        checksum = short_hash("section", _trimmed(_CHECKSUM.sub("", body, count=1)))
        pristine = f"#   checksum: {checksum}\n" in body and text.count(begin) == 1
    if not pristine:
        raise UsageError(
            reason=f"{sidecar_path(path)}: the section of {class_name} was edited, and is left as it is",
            hint=f"Copy what you want to keep, delete the text from `{begin}` to `{end}`, and try again.",
        )
    return match


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _like(existing: str, text: str) -> str:
    """Give ``text`` the line endings of ``existing``; git on Windows changes them."""
    return text.replace("\n", "\r\n") if "\r\n" in existing else text


def _trimmed(text: str) -> str:
    """Drop what tools change without anybody's intent: white space at the ends of lines and of the file."""
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()
