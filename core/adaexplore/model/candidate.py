"""One kernel source and where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

CandidateId = NewType("CandidateId", str)


class StepKind(StrEnum):
    """How a candidate arose."""

    LARGE = "large"
    """Another structure: partition, family, algorithm."""
    SMALL = "small"
    """The parent with a detail changed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Python source that defines ``triton_forward(module, …)`` and the kernels it launches."""

    id: CandidateId
    """Hash of the normalized source: equal sources are one candidate."""
    source: str
    proposer: str
    kind: StepKind
    parent: CandidateId | None = None
    params: dict[str, object] = field(default_factory=dict)
    """What the proposer chose, JSON-able: structure and schedules."""
    summary: str = ""
    """The choice in a few words, for people: ``one row a program, 8 warps``."""
