import pytest
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem, VersionedTextDocumentIdentifier
from pygls.workspace import Workspace

from adaexplore_lsp import documents as documents_module
from adaexplore_lsp.documents import Documents, differs_from_disk, module_hash


@pytest.mark.parametrize(
    ("line", "name"), [(1, None), (5, None), (6, "Norm"), (7, "Norm"), (11, "Norm.Inner"), (16, "Norm"), (17, None)]
)
def test_the_innermost_class_holds_a_line(make, line, name):
    module = make.document().module_at(line, line)
    assert (module and module.name) == name


def test_a_selection_lies_in_the_class_that_holds_all_of_it(make):
    document = make.document()
    assert document.module_at(11, 16).name == "Norm"
    assert document.module_at(12, 13).name == "Norm.Inner"
    assert document.module_at(12, 20) is None


def open_in(workspace, path, text, version=1):
    workspace.put_text_document(TextDocumentItem(path.as_uri(), "python", version, text))


def test_each_version_is_parsed_once(make, tmp_path, monkeypatch):
    parsed = []
    monkeypatch.setattr(documents_module, "modules_in", lambda text: parsed.append(text) or ())
    workspace, documents, path = Workspace(None), Documents(), tmp_path / "a b.py"
    open_in(workspace, path, "x = 1")
    assert documents.get(workspace, path.as_uri()) is documents.get(workspace, path.as_uri())
    assert parsed == ["x = 1"]
    workspace.update_text_document(
        VersionedTextDocumentIdentifier(version=2, uri=path.as_uri()),
        TextDocumentContentChangeWholeDocument("x = 2"),
    )
    assert documents.get(workspace, path.as_uri()).text == "x = 2"
    assert len(parsed) == 2
    workspace.remove_text_document(path.as_uri())
    assert documents.get(workspace, path.as_uri()) is None


@pytest.mark.parametrize("uri", ["untitled:a", "git:/a.py", "vscode-notebook-cell:/a.ipynb#W0"])
def test_what_is_no_file_is_no_document(uri):
    workspace = Workspace(None)
    workspace.put_text_document(TextDocumentItem(uri, "python", 1, "x"))
    assert Documents().get(workspace, uri) is None


@pytest.mark.parametrize(
    ("saved", "shown", "differs"),
    [
        (b"a\nb\n", "a\nb\n", False),
        (b"a\r\nb\n", "a\nb\n", False),
        (b"a\rb\r", "a\r\nb\r\n", False),
        (b"\xef\xbb\xbfa\n", "a\n", False),
        (b"# coding: latin-1\n# \xe4\n", "# coding: latin-1\n# ä\n", False),
        (b"a\n", "a", True),
        (b"a\n", "b\n", True),
        (b"\xff", "ÿ", True),
        (b"# coding: nonsense\n", "# coding: nonsense\n", True),
        (None, "a", True),
    ],
)
def test_what_is_shown_is_compared_with_what_is_saved(make, tmp_path, saved, shown, differs):
    path = tmp_path / "a.py"
    if saved is not None:
        path.write_bytes(saved)
    assert differs_from_disk(make.document(shown, path)) is differs


def test_the_hash_knows_the_class_and_not_its_surroundings(make):
    def digest(text):
        document = make.document(text)
        return module_hash(document, document.module_named("Norm"))

    same = digest(make.source)
    assert digest(make.source.replace("class Bare", "class Other")) == same
    assert digest(make.source.replace("@torch.no_grad()\n", "")) == same
    assert digest(make.source.replace("def __init__(self, dim)", "def __init__(self, size)")) != same
