"""Code actions on a module: optimize, cancel, insert, revert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from adaexplore.errors import AdaExploreError
from adaexplore.replacement.section import render_section
from adaexplore_lsp import messages
from adaexplore_lsp.convert import lines_of
from adaexplore_lsp.edits import insertion, reversion, sidecar_of
from adaexplore_lsp.protocol import (
    CANCEL,
    KIND,
    KIND_CANCEL,
    KIND_INSERT,
    KIND_OPTIMIZE,
    KIND_REVERT,
    OPTIMIZE,
    ModuleReference,
)
from adaexplore_lsp.server import AdaExploreServer
from adaexplore_lsp.situation import Situation, situation_of

OPTIMIZE_TITLE = "Optimize with Triton"
REVERT_TITLE = "Revert to PyTorch"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the client can do with an action."""

    disabled: bool = False
    """It shows why an action is not to be had."""
    resolve_edit: bool = False
    """It asks for the edit of the action that was chosen."""
    create: bool = False
    """It creates files."""
    delete: bool = False
    """It deletes files."""


def register(server: AdaExploreServer) -> None:
    """Offer the actions; where the client can, work out an edit only when it is chosen."""
    options = types.CodeActionOptions(
        code_action_kinds=[KIND, KIND_OPTIMIZE, KIND_CANCEL, KIND_INSERT, KIND_REVERT], resolve_provider=True
    )

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def on_code_action(ls: AdaExploreServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        document = ls.document(params.text_document.uri)
        module = None if document is None else document.module_at(*lines_of(params.range))
        if document is None or module is None or not _wanted(KIND, params.context.only, below=True):
            return []
        abilities = abilities_of(ls.client_capabilities)
        actions = actions_for(situation_of(ls, document, module), abilities)
        wanted = [action for action in actions if _wanted(str(action.kind), params.context.only)]
        return wanted if abilities.resolve_edit else [_resolved_at_once(ls, action, abilities) for action in wanted]

    @server.feature(types.CODE_ACTION_RESOLVE)
    def on_resolve(ls: AdaExploreServer, action: types.CodeAction) -> types.CodeAction:
        return resolved(ls, action)


def abilities_of(client: types.ClientCapabilities) -> Abilities:
    """Read what matters here out of the client's capabilities.

    Neovim 0.11 announces no ``documentChanges``, only the operations in them, and does both.
    """
    action = None if client.text_document is None else client.text_document.code_action
    edit = None if client.workspace is None else client.workspace.workspace_edit
    operations = (edit.resource_operations or ()) if edit is not None else ()
    return Abilities(
        disabled=bool(action and action.disabled_support),
        resolve_edit=bool(
            action and action.data_support and action.resolve_support and "edit" in action.resolve_support.properties
        ),
        create=types.ResourceOperationKind.Create in operations,
        delete=types.ResourceOperationKind.Delete in operations,
    )


def actions_for(situation: Situation, abilities: Abilities) -> list[types.CodeAction]:
    """Give the actions, edits left out: while a search runs only its end, else all that can be done."""
    reference = ModuleReference(situation.document.uri, situation.module.name)
    if situation.running is not None:
        return [_command(messages.cancel_title(situation.running), KIND_CANCEL, CANCEL, reference)]
    actions = []
    if situation.can_insert:
        actions.append(_insert(situation, abilities, reference))
    if situation.replaced:
        actions.append(_edit(REVERT_TITLE, KIND_REVERT, reference))
    actions.append(_optimize(situation, abilities, reference))
    return actions


def resolved(ls: AdaExploreServer, action: types.CodeAction) -> types.CodeAction:
    """Give the action with its edit, for the text as it is now.

    Raises:
        JsonRpcException: The module or its result is gone, or its sidecar's place is taken.
    """
    if action.data is None:
        return action
    reference = _reference(action.data)
    document = ls.document(reference.uri)
    module = None if document is None else document.module_named(reference.name)
    if document is None or module is None:
        raise JsonRpcException(f"the class {reference.name} is no longer there")
    try:
        action.edit = _edit_for(ls, str(action.kind), situation_of(ls, document, module))
    except AdaExploreError as error:
        raise JsonRpcException(f"{error} {error.hint}".rstrip()) from error
    return action


def _resolved_at_once(ls: AdaExploreServer, action: types.CodeAction, abilities: Abilities) -> types.CodeAction:
    try:
        return resolved(ls, action)
    except JsonRpcException as error:  # one action that is not to be had takes no other with it
        return _unavailable(action, error.message, abilities)


def _edit_for(ls: AdaExploreServer, kind: str, situation: Situation) -> types.WorkspaceEdit:
    document, module = situation.document, situation.module
    sidecar = sidecar_of(document, ls.workspace)
    if kind == KIND_REVERT:
        return reversion(document, module, sidecar, abilities_of(ls.client_capabilities).delete)
    if situation.result is None or not situation.result.insertable:
        raise JsonRpcException(f"{module.name} was changed since the search: there is no kernel for it as it is now")
    run = situation.result.run
    best = ls.results.best(ls.settings.resolved_data_dir(), run)
    return insertion(document, module, render_section(run, best, run.final), sidecar)


def _reference(data: Any) -> ModuleReference:
    if isinstance(data, dict) and isinstance(data.get("uri"), str) and isinstance(data.get("name"), str):
        return ModuleReference(data["uri"], data["name"])
    raise JsonRpcInvalidParams("this action is not one of ours")


def _insert(situation: Situation, abilities: Abilities, reference: ModuleReference) -> types.CodeAction:
    assert situation.result is not None
    assert situation.result.evaluation is not None
    title = f"Insert Triton kernel ({messages.short_speedup(situation.result.evaluation)})"
    action = _edit(title, KIND_INSERT, reference)
    if abilities.create:
        return action
    return _unavailable(action, "this editor creates no files: use adaexplore optimize --insert", abilities)


def _optimize(situation: Situation, abilities: Abilities, reference: ModuleReference) -> types.CodeAction:
    action = _command(OPTIMIZE_TITLE, KIND_OPTIMIZE, OPTIMIZE, reference)
    if not isinstance(situation.workload, AdaExploreError):
        return action
    return _unavailable(action, str(situation.workload), abilities)


def _command(title: str, kind: str, command: str, reference: ModuleReference) -> types.CodeAction:
    argument = get_converter().unstructure(reference)
    return types.CodeAction(title=title, kind=kind, command=types.Command(title, command, arguments=[argument]))


def _edit(title: str, kind: str, reference: ModuleReference) -> types.CodeAction:
    return types.CodeAction(title=title, kind=kind, data=get_converter().unstructure(reference))


def _unavailable(action: types.CodeAction, reason: str, abilities: Abilities) -> types.CodeAction:
    """Say why an action is not to be had; a command stays where the client shows no reasons: it says more."""
    action.data = None
    if abilities.disabled:
        action.disabled = types.CodeActionDisabled(reason=reason)
        action.command = None
    else:
        action.title = f"{action.title} (not yet: {reason})"
    return action


def _wanted(kind: str, only: Any, *, below: bool = False) -> bool:
    """Tell whether ``kind`` is asked for; kinds are a hierarchy with dots, and no list asks for all."""
    if only is None:
        return True
    asked = [str(getattr(item, "value", item)) for item in only]
    return any(
        not item or kind == item or kind.startswith(f"{item}.") or (below and item.startswith(f"{kind}."))
        for item in asked
    )
