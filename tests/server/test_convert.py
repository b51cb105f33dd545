import pytest
from lsprotocol.types import (
    ClientCapabilities,
    HoverClientCapabilities,
    MarkupKind,
    Position,
    Range,
    TextDocumentClientCapabilities,
)

from adaexplore.replacement.insert import LineEdit
from adaexplore_lsp.convert import line_edit, lines_of, markup, replace_all, sibling_uri, versioned


@pytest.mark.parametrize(
    ("start", "end", "lines"),
    [((0, 0), (0, 0), (1, 1)), ((4, 7), (4, 9), (5, 5)), ((4, 7), (9, 2), (5, 10)), ((4, 7), (9, 0), (5, 9))],
)
def test_a_selection_is_its_lines(start, end, lines):
    assert lines_of(Range(start=Position(*start), end=Position(*end))) == lines


def apply(text, edit):
    """Apply an edit as LSP says: lines end at \\n, \\r\\n and \\r, and a line beyond the last is the text's end."""
    starts = [0]
    for index, character in enumerate(text):
        if character == "\n" or (character == "\r" and text[index + 1 : index + 2] != "\n"):
            starts.append(index + 1)
    assert edit.range.start.character == edit.range.end.character == 0
    start, end = (starts[p.line] if p.line < len(starts) else len(text) for p in (edit.range.start, edit.range.end))
    return text[:start] + edit.new_text + text[end:]


TEXTS = ["", "a", "a\n", "a\nb", "a\nb\n", "\n", "a\r\nb\r\n", "a\rb", "a\fb\u2028c\x85d\n", "a\n\n", "😀\n\n😀"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_whole_document_is_replaced(text):
    edit = replace_all(text, "new\n")
    assert apply(text, edit) == "new\n"
    assert edit.range.end.line >= 1, "Neovim would add an empty line to a new file"


@pytest.mark.parametrize(
    ("edit", "result"),
    [
        (LineEdit(1, 0, "x\n"), "x\na\f\u2028\nb\n"),
        (LineEdit(2, 0, "x\n"), "a\f\u2028\nx\nb\n"),
        (LineEdit(2, 1, ""), "a\f\u2028\n"),
        (LineEdit(1, 2, "x\n"), "x\n"),
    ],
)
def test_line_edits(edit, result):
    assert apply("a\f\u2028\nb\n", line_edit(edit)) == result


def test_a_sibling_keeps_the_client_spelling():
    assert sibling_uri("file:///c%3A/my%20code/a.py", "a b_triton.py") == "file:///c%3A/my%20code/a%20b_triton.py"


def test_an_edit_names_its_version():
    edit = versioned("file:///a.py", 7, replace_all("", "x"))
    assert (edit.text_document.uri, edit.text_document.version) == ("file:///a.py", 7)


@pytest.mark.parametrize(
    ("formats", "kind", "value"),
    [
        (None, MarkupKind.Markdown, "**a** `b`"),
        ([MarkupKind.PlainText, MarkupKind.Markdown], MarkupKind.Markdown, "**a** `b`"),
        ([MarkupKind.PlainText], MarkupKind.PlainText, "a b"),
    ],
)
def test_a_client_gets_the_markup_that_it_shows(formats, kind, value):
    hover = HoverClientCapabilities(content_format=formats)
    client = ClientCapabilities(text_document=TextDocumentClientCapabilities(hover=hover))
    content = markup("**a** `b`", client)
    assert (content.kind, content.value) == (kind, value)
    assert markup("x", ClientCapabilities()).kind is MarkupKind.Markdown
