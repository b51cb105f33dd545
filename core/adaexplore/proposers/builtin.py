"""The builtin proposer: graph → partition, structures and schedules. No key, no network, deterministic.

A large step is another structure: which products are left to the library, how each kernel loads and walks its data,
which numeric route it takes. A small step moves one schedule parameter of one kernel to a neighbouring choice.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from adaexplore.codegen.emit import Choice, emit, new_emission
from adaexplore.codegen.kernel import Emission
from adaexplore.codegen.lowering import lower_task
from adaexplore.codegen.partition import Group, GroupKind, partition, with_library_product
from adaexplore.codegen.registry import family_of
from adaexplore.codegen.schedule import defaults
from adaexplore.errors import CaptureError
from adaexplore.model.candidate import Candidate, StepKind
from adaexplore.model.identity import candidate_id
from adaexplore.model.task import Task
from adaexplore.search.proposal import Proposal

H100_PROCESSORS = 132
"""Streaming multiprocessors of an H100 SXM or H200: what schedules are made for where there is no GPU."""
MOST_PLANS = 300
"""Structures considered for one module; a run tries some tens of candidates."""
_TAKEN_NAMES = frozenset({"module", "names", "device", "cls", "original"})
"""What the functions of a sidecar call their own arguments and variables."""
_NO_KERNEL = (GroupKind.VIEW, GroupKind.LIBRARY)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A structure: which products the library does, and a kernel structure for each group."""

    library: tuple[bool, ...]
    """For each matmul group of the partition, in order."""
    structures: tuple[str, ...]
    """For each group after ``library`` was applied; empty where there is no kernel."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One way to do one group of the partition."""

    library: bool
    structures: tuple[str, ...]
    """Two where a library product is followed by a kernel."""


def _choices(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Give index tuples below ``sizes``: all zero, one index changed, all changed alike, then two and more changed."""
    yield (0,) * len(sizes)
    for n_changed in range(1, len(sizes) + 1):
        for places in itertools.combinations(range(len(sizes)), n_changed):
            for values in itertools.product(*(range(1, sizes[p]) for p in places)):
                changed = dict(zip(places, values, strict=True))
                yield tuple(changed.get(p, 0) for p in range(len(sizes)))
        if n_changed == 1:
            for value in range(1, max(sizes, default=0)):
                yield tuple(min(value, size - 1) for size in sizes)


class BuiltinProposer:
    """Proposes from the captured graph.

    Args:
        task: What to propose for.
        allow_tf32: Whether fp32 products may use TF32 under the task's policy.
        n_processors: Streaming multiprocessors of the GPU; 0 where there is none.

    Raises:
        UnsupportedOperatorError: At construction, where an operator has no family.
        CaptureError: At construction, where there is nothing that a kernel could do, or an argument has our name.
    """

    name: ClassVar[str] = "builtin"

    def __init__(self, task: Task, *, allow_tf32: bool, n_processors: int = 0) -> None:
        taken = [p.name for p in task.graph.parameters if p.name in _TAKEN_NAMES]
        if taken:
            raise CaptureError(
                reason=f"{task.class_name} in {task.path}: forward has an argument `{taken[0]}`, which is what the "
                "replacement calls something of its own",
                hint="Rename the argument.",
            )
        self._task = task
        self._allow_tf32 = allow_tf32
        self._n_processors = n_processors or H100_PROCESSORS
        self._lowered = lower_task(task)
        self._groups = partition(self._lowered)
        self._plans = tuple(self._enumerate_plans())
        if not self._plans:
            raise CaptureError(
                reason=f"{task.class_name} in {task.path} computes nothing: there is nothing to optimize"
            )

    def propose(self, proposal: Proposal) -> Candidate | None:
        """Give a new candidate of the wanted kind, or None."""
        if proposal.kind is StepKind.LARGE:
            return self._large(proposal)
        return self._small(proposal)

    # -- large steps

    def _enumerate_plans(self) -> Iterator[_Plan]:
        """Give structures, the most promising first: every part at its best, then with one part changed, then two.

        Where a module has many parts, changing all of one kind alike comes before changing two of them, and at most
        ``MOST_PLANS`` are given: all combinations would be beyond counting.
        """
        parts = [self._options(group) for group in self._groups]
        seen: set[tuple[int, ...]] = set()
        for choice in itertools.islice(_choices([len(options) for options in parts]), MOST_PLANS):
            if choice in seen:
                continue
            seen.add(choice)
            chosen = [options[index] for options, index in zip(parts, choice, strict=True)]
            library = tuple(
                part.library for group, part in zip(self._groups, chosen, strict=True)
                if group.kind is GroupKind.MATMUL
            )  # fmt: skip
            structures = tuple(itertools.chain.from_iterable(part.structures for part in chosen))
            if any(structures):  # else nothing of ours would be left
                yield _Plan(library, structures)

    def _options(self, group: Group) -> list[_Part]:
        """Give the ways to do one group of the partition: its family's structures, then the library if there is one."""
        options = [_Part(False, (structure,)) for structure in self._structures(group)]
        if group.kind is GroupKind.MATMUL:
            tail = with_library_product(self._lowered, group)
            options.append(_Part(True, tuple(self._structures(g)[0] for g in tail)))
        return options

    def _emission(self) -> Emission:
        return new_emission(self._task, self._lowered, allow_tf32=self._allow_tf32, n_processors=self._n_processors)

    def _structures(self, group: Group) -> tuple[str, ...]:
        if group.kind in _NO_KERNEL:
            return ("",)
        return family_of(group).structures(self._emission(), group)

    def _apply(self, library: tuple[bool, ...]) -> tuple[Group, ...]:
        choices = iter(library)
        groups: list[Group] = []
        for group in self._groups:
            if group.kind is GroupKind.MATMUL and next(choices):
                groups += with_library_product(self._lowered, group)
            else:
                groups.append(group)
        return tuple(groups)

    def _large(self, proposal: Proposal) -> Candidate | None:
        for plan in self._plans:
            candidate = self._build(plan, self._default_schedules(plan), proposal)
            if candidate.id not in proposal.seen:
                return candidate
        return None

    def _default_schedules(self, plan: _Plan) -> list[dict[str, int]]:
        emission = self._emission()
        return [
            {} if group.kind in _NO_KERNEL else defaults(family_of(group).space(emission, group, structure))
            for group, structure in zip(self._apply(plan.library), plan.structures, strict=True)
        ]

    # -- small steps

    def _small(self, proposal: Proposal) -> Candidate | None:
        """Move one parameter of the parent by one notch; where all such moves were tried, by two, and so on."""
        assert proposal.parent is not None
        params: Any = proposal.parent.candidate.params
        plan = _Plan(tuple(params["library"]), tuple(params["structures"]))
        schedules = [dict(s) for s in params["schedules"]]
        moves = self._moves(plan, schedules)
        Random(proposal.seed).shuffle(moves)
        moves.sort(key=lambda move: move[0])
        for _, position, name, value in moves:
            changed = [dict(s) for s in schedules]
            changed[position][name] = value
            candidate = self._build(plan, changed, proposal)
            if candidate.id not in proposal.seen:
                return candidate
        return None

    def _moves(self, plan: _Plan, schedules: list[dict[str, int]]) -> list[tuple[int, int, str, int]]:
        """Give (distance, group, parameter, value) for every value that one parameter could take instead."""
        emission = self._emission()
        moves: list[tuple[int, int, str, int]] = []
        for position, group in enumerate(self._apply(plan.library)):
            if group.kind in _NO_KERNEL:
                continue
            for choice in family_of(group).space(emission, group, plan.structures[position]):
                here = choice.values.index(schedules[position][choice.name])
                moves += [
                    (abs(there - here), position, choice.name, value)
                    for there, value in enumerate(choice.values)
                    if there != here
                ]
        return moves

    # -- both

    def _build(self, plan: _Plan, schedules: list[dict[str, int]], proposal: Proposal) -> Candidate:
        groups = self._apply(plan.library)
        choices = [Choice(s, schedule) for s, schedule in zip(plan.structures, schedules, strict=True)]
        emitted = emit(self._emission(), groups, choices)
        parts = [
            "library product" if group.kind is GroupKind.LIBRARY
            else family_of(group).describe(structure, schedule)
            for group, structure, schedule in zip(groups, plan.structures, schedules, strict=True)
            if group.kind is not GroupKind.VIEW
        ]  # fmt: skip
        return Candidate(
            id=candidate_id(emitted.source),
            source=emitted.source,
            proposer=self.name,
            kind=proposal.kind,
            parent=proposal.parent.candidate.id if proposal.parent else None,
            params={
                "library": list(plan.library),
                "structures": list(plan.structures),
                "schedules": schedules,
                "function": emitted.function,
                "conditions": list(emitted.conditions),
                "call_conditions": list(emitted.call_conditions),
            },
            summary="; ".join(f"{n} x {part}" if n > 1 else part for part, n in Counter(parts).items()),
        )
