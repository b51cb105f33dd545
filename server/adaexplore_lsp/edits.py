"""The workspace edits: put a kernel in, take it out. Whole files and whole lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types
from pygls.workspace import Workspace

from adaexplore.model.task import ModuleClass
from adaexplore.replacement.insert import plan_insertion
from adaexplore.replacement.receipt import Section
from adaexplore.replacement.revert import plan_revert
from adaexplore.replacement.sidecar import sidecar_path
from adaexplore_lsp.convert import line_edit, replace_all, sibling_uri, versioned
from adaexplore_lsp.documents import Document, opened

Changes = list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The file beside the user's, as the editor shows it, else as it is on disk."""

    uri: str
    text: str | None
    """None where there is no such file."""
    version: int | None = None
    """Where it is open."""


def sidecar_of(document: Document, workspace: Workspace) -> Sidecar:
    """Read the sidecar of a document."""
    path = sidecar_path(document.path)
    uri = sibling_uri(document.uri, path.name)
    shown = opened(workspace, uri)
    if shown is not None:
        return Sidecar(uri, shown.source, shown.version)
    return Sidecar(uri, _read(path))


def insertion(document: Document, module: ModuleClass, section: Section, sidecar: Sidecar) -> types.WorkspaceEdit:
    """Give the edit that puts a kernel into the sidecar, and one line into the user's file.

    Raises:
        UsageError: The file in the sidecar's place is not one of ours, or was edited.
    """
    plan = plan_insertion(document.text, document.path, module, section, sidecar.text)
    # The versioned edit comes first: Neovim looks at no version but the first change's.
    changes: Changes = [versioned(document.uri, document.version, line_edit(plan.edit))]
    if sidecar.text is None:
        options = types.CreateFileOptions(overwrite=False, ignore_if_exists=False)
        changes.append(types.CreateFile(uri=sidecar.uri, options=options))
    changes.append(versioned(sidecar.uri, sidecar.version, replace_all(sidecar.text or "", plan.sidecar_text)))
    return types.WorkspaceEdit(document_changes=changes)


def reversion(document: Document, module: ModuleClass, sidecar: Sidecar, can_delete: bool) -> types.WorkspaceEdit:
    """Give the edit that takes our line out of the user's file, and the section out of the sidecar.

    Args:
        document: The user's file.
        module: The replaced class.
        sidecar: Its sidecar.
        can_delete: Whether the client deletes files; else an emptied sidecar stays as an empty file.

    Raises:
        UsageError: The sidecar is not ours, or was edited.
    """
    plan = plan_revert(document.text, document.path, module, sidecar.text)
    changes: Changes = [versioned(document.uri, document.version, line_edit(plan.edit))]
    if sidecar.text is not None and plan.sidecar_text is None and can_delete:
        options = types.DeleteFileOptions(ignore_if_not_exists=True)
        changes.append(types.DeleteFile(uri=sidecar.uri, options=options))
    elif sidecar.text is not None and plan.sidecar_text != sidecar.text:
        changes.append(versioned(sidecar.uri, sidecar.version, replace_all(sidecar.text, plan.sidecar_text or "")))
    return types.WorkspaceEdit(document_changes=changes)


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
