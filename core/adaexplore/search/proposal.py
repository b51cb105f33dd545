"""What the tree asks a proposer for."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.model.candidate import Candidate, StepKind
from adaexplore.model.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with its outcome."""

    candidate: Candidate
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Proposal:
    """A request for one candidate."""

    step: int
    """1-based number of the step this candidate would be."""
    kind: StepKind
    parent: Judged | None
    """The node to expand; None at the root."""
    chain: tuple[Judged, ...]
    """Small steps: from the nearest large step down to ``parent``, the last five at most."""
    pool: tuple[Judged, ...]
    """Large steps: the best correct candidates of different branches."""
    seen: frozenset[str]
    """Ids of all candidates already evaluated in this run; none of them is to be proposed again."""
    seed: int
    """For the proposer's own choices; the same run and step always give the same seed."""
