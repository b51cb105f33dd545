"""Captured tasks from disk, and sources written for them without a proposer."""

from __future__ import annotations

from adaexplore.codegen.emit import Choice, Emitted, emit, new_emission
from adaexplore.codegen.lowering import lower_task
from adaexplore.codegen.partition import GroupKind, partition, with_library_product
from adaexplore.codegen.registry import family_of
from adaexplore.codegen.schedule import defaults
from adaexplore.model.candidate import Candidate, StepKind
from adaexplore.model.identity import candidate_id
from adaexplore.model.serialization import from_json
from adaexplore.model.task import Task

from .capture_graphs import FOLDER


def stored_task(name: str) -> Task:
    return from_json((FOLDER / f"{name}.json").read_text(encoding="utf-8"), Task)


def write(
    task: Task, structure: str = "", *, library: bool = False, n_processors: int = 132, **changes: int
) -> Emitted:
    """Write the task's source.

    Args:
        task: What is computed.
        structure: For the groups that have it; the others get their first.
        library: Leave products to the library.
        n_processors: Streaming multiprocessors.
        changes: Schedule parameters that differ from the defaults, for the groups that have them.
    """
    lowered = lower_task(task)
    groups = partition(lowered)
    if library:
        groups = tuple(
            part
            for group in groups
            for part in (with_library_product(lowered, group) if group.kind is GroupKind.MATMUL else (group,))
        )
    emission = new_emission(task, lowered, allow_tf32=False, n_processors=n_processors)
    choices = []
    for group in groups:
        if group.kind in (GroupKind.VIEW, GroupKind.LIBRARY):
            choices.append(Choice())
            continue
        family = family_of(group)
        found = family.structures(emission, group)
        chosen = structure if structure in found else found[0]
        schedule = defaults(family.space(emission, group, chosen))
        schedule |= {name: value for name, value in changes.items() if name in schedule}
        choices.append(Choice(chosen, schedule))
    return emit(new_emission(task, lowered, allow_tf32=False, n_processors=n_processors), groups, choices)


def as_candidate(emitted: Emitted) -> Candidate:
    params: dict[str, object] = {
        "conditions": list(emitted.conditions),
        "call_conditions": list(emitted.call_conditions),
    }
    return Candidate(candidate_id(emitted.source), emitted.source, "builtin", StepKind.LARGE, None, params)
