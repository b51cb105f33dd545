"""The text an editor shows, with the modules in it. Nothing here runs a line of it."""

from __future__ import annotations

import tokenize
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pygls.uris import to_fs_path
from pygls.workspace import TextDocument, Workspace

from adaexplore.capture.locate import class_source, find_modules
from adaexplore.model.identity import source_hash
from adaexplore.model.task import ModuleClass
from adaexplore_lsp.jobs import Target


@dataclass(frozen=True, slots=True)
class Document:
    """One version of one open file."""

    uri: str
    path: Path
    """Absolute; links are not followed, as in the command line, so that both find each other's results."""
    version: int | None
    text: str
    modules: tuple[ModuleClass, ...]

    def module_at(self, first_line: int, last_line: int) -> ModuleClass | None:
        """Give the innermost module that holds all of the 1-based lines."""
        holding = [m for m in self.modules if m.first_line <= first_line and last_line <= m.end_line]
        return max(holding, key=lambda module: module.first_line, default=None)

    def module_named(self, name: str) -> ModuleClass | None:
        """Give the module of that qualified name; the last of several, as Python would."""
        named = [module for module in self.modules if module.name == name]
        return named[-1] if named else None

    def target(self, module: ModuleClass) -> Target:
        """Give what a search for ``module`` searches for."""
        return Target(str(self.path), module.name)


class Documents:
    """The workspace's open Python files, each parsed once for each version."""

    def __init__(self) -> None:
        self._cache: dict[str, Document] = {}

    def get(self, workspace: Workspace, uri: str) -> Document | None:
        """Give the document; None for what is not open or is no file."""
        path = to_fs_path(uri)
        open_document = opened(workspace, uri)
        if path is None or open_document is None or not uri.startswith("file:"):
            self._cache.pop(uri, None)
            return None
        version, text = open_document.version, open_document.source
        cached = self._cache.get(uri)
        if cached is not None and cached.version == version and cached.text == text:
            return cached
        document = Document(uri, Path(path).absolute(), version, text, modules_in(text))
        self._cache[uri] = document
        return document

    def forget(self, uri: str) -> None:
        """Drop what is kept of a closed document."""
        self._cache.pop(uri, None)


def opened(workspace: Workspace, uri: str) -> TextDocument | None:
    """Give the client's text of ``uri``, if it has it open; pygls' keys are unquoted."""
    documents: dict[str, TextDocument] = workspace.text_documents
    return documents.get(unquote(uri))


def modules_in(text: str) -> tuple[ModuleClass, ...]:
    """Find the modules; none in a text that does not parse, which is normal while one types."""
    try:
        return tuple(find_modules(text))
    except SyntaxError:
        return ()


def differs_from_disk(document: Document) -> bool:
    """Tell whether the editor shows something else than the file has, line ends and a byte-order mark aside."""
    try:
        with tokenize.open(document.path) as file:
            saved = file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return True
    return _plain(saved) != _plain(document.text)


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def module_hash(document: Document, module: ModuleClass) -> str:
    """Give the hash that a task of this module's present text has."""
    return source_hash(class_source(document.text, module))
