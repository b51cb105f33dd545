import dataclasses
from pathlib import Path

import pytest
from lsprotocol import types

from adaexplore.errors import UsageError
from adaexplore.model.run import RunOutcome
from adaexplore.replacement.insert import apply_edit, plan_insertion
from adaexplore_lsp.edits import Sidecar, insertion, reversion
from adaexplore_lsp.features.code_action import Abilities, abilities_of, actions_for
from adaexplore_lsp.jobs import JobState
from adaexplore_lsp.results import Result
from adaexplore_lsp.situation import Situation

EVERYTHING = Abilities(disabled=True, resolve_edit=True, create=True, delete=True)
SIDECAR_URI = "file:///project/my%20model_triton.py"


@pytest.fixture
def situation(make):
    """Give a function that makes a situation of Norm, or of another class."""

    def build(name="Norm", text=make.source, **changes):
        document = make.document(text)
        module = document.module_named(name)
        workload = module.workload or UsageError(reason=f"{name} has no workload", hint="Write one.")
        return Situation(document, module, workload, **changes)

    return build


def titles(actions):
    return [action.title for action in actions]


def replaced(make, run_id="r1"):
    """Give the source with a kernel inserted, and the sidecar's text."""
    document = make.document()
    plan = plan_insertion(
        document.text, document.path, document.module_named("Norm"), make.section(run_id=run_id), None
    )
    return apply_edit(document.text, plan.edit), plan.sidecar_text


def test_a_module_with_a_workload_can_be_optimized(situation):
    (action,) = actions_for(situation(), EVERYTHING)
    assert action.title == "Optimize with Triton"
    assert action.kind == "refactor.rewrite.adaexplore.optimize"
    assert action.command.command == "adaexplore.optimize"
    assert action.command.arguments == [{"uri": "file:///project/my%20model.py", "name": "Norm"}]
    assert action.disabled is None


def test_without_a_workload_the_reason_is_given(situation):
    (action,) = actions_for(situation("Bare"), EVERYTHING)
    assert action.disabled.reason == "Bare has no workload"
    (action,) = actions_for(situation("Bare"), dataclasses.replace(EVERYTHING, disabled=False))
    assert action.title == "Optimize with Triton (not yet: Bare has no workload)"
    assert action.command.command == "adaexplore.optimize"


def test_a_running_search_can_only_be_cancelled(make, situation):
    result = Result(make.run("/m.py"), make.measured)
    (action,) = actions_for(situation(running=JobState(12, 30, 1.8), result=result), EVERYTHING)
    assert action.title == "Cancel the search (12/30, best 1.80x)"
    assert action.command.command == "adaexplore.cancel"


@pytest.mark.parametrize(("gpu", "title"), [(True, "2.30x"), (False, "verified, not measured")])
def test_a_result_can_be_inserted(make, situation, gpu, title):
    evaluation = make.measured if gpu else make.verified
    outcome = RunOutcome.IMPROVED if gpu else RunOutcome.VERIFIED
    result = Result(make.run("/m.py", outcome=outcome, final=evaluation), evaluation)
    first, second = actions_for(situation(result=result), EVERYTHING)
    assert first.title == f"Insert Triton kernel ({title})"
    assert first.data == {"uri": "file:///project/my%20model.py", "name": "Norm"}
    assert first.edit is None
    assert second.title == "Optimize with Triton"
    first, _ = actions_for(situation(result=result), dataclasses.replace(EVERYTHING, create=False))
    assert "--insert" in first.disabled.reason
    assert first.data is None


def test_a_result_that_is_no_better_is_not_inserted(make, situation):
    result = Result(make.run("/m.py", outcome=RunOutcome.NOTHING_BETTER), make.measured)
    assert titles(actions_for(situation(result=result), EVERYTHING)) == ["Optimize with Triton"]


def test_a_replaced_module_can_be_reverted_or_get_a_newer_kernel(make, situation):
    text, _ = replaced(make)
    receipt = make.section().receipt
    same, newer = (Result(make.run("/m.py", run_id=run_id), make.measured) for run_id in ("r1", "r2"))
    expected = ["Revert to PyTorch", "Optimize with Triton"]
    assert titles(actions_for(situation(text=text, receipt=receipt, result=same), EVERYTHING)) == expected
    assert titles(actions_for(situation(text=text, receipt=None), EVERYTHING)) == expected
    actions = actions_for(situation(text=text, receipt=receipt, result=newer), EVERYTHING)
    assert titles(actions) == ["Insert Triton kernel (2.30x)", *expected]


def test_inserting_creates_the_sidecar_and_adds_a_line(make):
    document = make.document()
    edit = insertion(document, document.module_named("Norm"), make.section(), Sidecar(SIDECAR_URI, None))
    line, create, sidecar = edit.document_changes
    assert line.text_document.version == 3, "the versioned edit comes first: Neovim checks no other"
    assert line.text_document.uri == document.uri
    assert [e.range.start for e in line.edits] == [e.range.end for e in line.edits] == [types.Position(5, 0)]
    assert line.edits[0].new_text.startswith("@__import__(")
    assert line.edits[0].new_text.count("\n") == 1
    assert (create.kind, create.uri) == ("create", SIDECAR_URI)
    assert not create.options.ignore_if_exists
    assert sidecar.text_document.uri == SIDECAR_URI
    assert "def triton_norm(cls):" in sidecar.edits[0].new_text


def test_inserting_into_an_open_sidecar_replaces_its_text(make):
    _, text = replaced(make)
    document = make.document()
    shown = Sidecar(SIDECAR_URI, text, 9)
    edit = insertion(document, document.module_named("Bare"), make.section("Bare"), shown)
    _, sidecar = edit.document_changes
    assert sidecar.text_document.version == 9
    assert sidecar.edits[0].range.end.line == text.count("\n")
    assert "def triton_norm(cls):" in sidecar.edits[0].new_text
    assert "def triton_bare(cls):" in sidecar.edits[0].new_text


def test_a_file_that_is_not_ours_is_left_alone(make):
    document = make.document()
    with pytest.raises(UsageError):
        insertion(document, document.module_named("Norm"), make.section(), Sidecar(SIDECAR_URI, "mine = 1\n"))


def test_reverting_removes_the_line_and_the_sidecar(make):
    text, sidecar_text = replaced(make)
    document = make.document(text)
    module, sidecar = document.module_named("Norm"), Sidecar(SIDECAR_URI, sidecar_text)
    line, delete = reversion(document, module, sidecar, can_delete=True).document_changes
    assert (line.edits[0].range.start.line, line.edits[0].range.end.line, line.edits[0].new_text) == (5, 6, "")
    assert line.text_document.version == 3
    assert (delete.kind, delete.uri) == ("delete", SIDECAR_URI)
    assert delete.options.ignore_if_not_exists
    _, emptied = reversion(document, module, sidecar, can_delete=False).document_changes
    assert emptied.edits[0].new_text == ""


def test_reverting_keeps_other_sections_and_needs_no_sidecar(make):
    text, sidecar_text = replaced(make)
    both = plan_insertion(
        make.source, Path("/project/my model.py"), make.document().module_named("Bare"), make.section("Bare"),
        sidecar_text,
    ).sidecar_text  # fmt: skip
    document = make.document(text)
    module = document.module_named("Norm")
    _, kept = reversion(document, module, Sidecar(SIDECAR_URI, both), can_delete=True).document_changes
    assert "triton_bare" in kept.edits[0].new_text
    assert "triton_norm" not in kept.edits[0].new_text
    assert len(reversion(document, module, Sidecar(SIDECAR_URI, None), can_delete=True).document_changes) == 1


def test_abilities_come_from_the_capabilities():
    assert abilities_of(types.ClientCapabilities()) == Abilities()
    kinds = types.ResourceOperationKind
    edit = types.WorkspaceEditClientCapabilities(resource_operations=[kinds.Create, kinds.Delete])
    action = types.CodeActionClientCapabilities(
        disabled_support=True,
        data_support=True,
        resolve_support=types.ClientCodeActionResolveOptions(properties=["edit"]),
    )
    client = types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(workspace_edit=edit),
        text_document=types.TextDocumentClientCapabilities(code_action=action),
    )
    assert abilities_of(client) == EVERYTHING
    action.data_support = False
    assert not abilities_of(client).resolve_edit
