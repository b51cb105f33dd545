r"""Engine ↔ protocol types: the only place that knows positions.

Every edit of ours is one of whole lines, so a position is the start of a line, which is the same in all
encodings. The engine counts lines from 1 and, as Python and LSP do, ends them at ``\n``, ``\r\n`` and ``\r``
alone; pygls' own line model also splits at form feeds and U+2028, so it is not used.
"""

from __future__ import annotations

from urllib.parse import quote

from lsprotocol import types

from adaexplore.capture.text import split_lines
from adaexplore.replacement.insert import LineEdit


def lines_of(selection: types.Range) -> tuple[int, int]:
    """Give the first and last line of a selection, 1-based; one that ends at a line's start has not that line."""
    first, last = selection.start.line + 1, selection.end.line + 1
    if selection.end.character == 0 and last > first:
        last -= 1
    return first, last


def line_of(position: types.Position) -> int:
    """Give the 1-based line."""
    return position.line + 1


def line_edit(edit: LineEdit) -> types.TextEdit:
    """Give the edit of the user's file."""
    start = edit.first_line - 1
    return types.TextEdit(range=_lines(start, start + edit.removed), new_text=edit.text)


def replace_all(old: str, new: str) -> types.TextEdit:
    """Replace a whole document.

    The range ends one line below the last, which clients clamp. For an empty document too: Neovim then
    takes the new text's last line end for the file's own, and adds no empty line.
    """
    return types.TextEdit(range=_lines(0, max(1, len(split_lines(old)))), new_text=new)


def versioned(uri: str, version: int | None, edit: types.TextEdit) -> types.TextDocumentEdit:
    """Give the edit of one document, valid for ``version`` only; None for one that is not open."""
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
    return types.TextDocumentEdit(text_document=identifier, edits=[edit])


def sibling_uri(uri: str, name: str) -> str:
    """Give the URI of the file ``name`` in the same folder, spelled as the client spells that folder."""
    return f"{uri.rsplit('/', 1)[0]}/{quote(name)}"


def markup(text: str, client: types.ClientCapabilities) -> types.MarkupContent:
    """Give Markdown, or the same without its marks to a client that shows plain text only."""
    hover = None if client.text_document is None else client.text_document.hover
    formats = (hover.content_format if hover is not None else None) or [types.MarkupKind.Markdown]
    if types.MarkupKind.Markdown in formats:
        return types.MarkupContent(kind=types.MarkupKind.Markdown, value=text)
    return types.MarkupContent(kind=types.MarkupKind.PlainText, value=text.replace("**", "").replace("`", ""))


def _lines(start: int, end: int) -> types.Range:
    return types.Range(start=types.Position(start, 0), end=types.Position(end, 0))
