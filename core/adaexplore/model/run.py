"""One search over one task, as the store keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.task import Environment, Task

RunId = NewType("RunId", str)


class RunOutcome(StrEnum):
    """How a run stands. A run without an outcome of its own was interrupted and can be resumed."""

    OPEN = "open"
    """At work, or interrupted: the lock tells which."""
    IMPROVED = "improved"
    """Faster than eager, measured."""
    NOTHING_BETTER = "nothing_better"
    """Candidates passed; none is faster than what is there."""
    VERIFIED = "verified"
    """No GPU: checked, not measured."""
    CANCELLED = "cancelled"
    """Ended by the user; the best so far is kept."""
    FAILED = "failed"
    """No candidate passed."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What decides the course of a run beside its task; the same settings and seed give the same tree."""

    steps: int
    seconds: float | None
    seed: int
    proposer: str
    python: str
    target: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run's fixed part and its outcome."""

    id: RunId
    task: Task
    settings: RunSettings
    environment: Environment
    created_at: str
    """UTC, ISO 8601."""
    outcome: RunOutcome = RunOutcome.OPEN
    seconds: float = 0.0
    """Time spent, over all sessions of a resumed run."""
    best_step: int | None = None
    """Step of the best candidate, for a finished run."""
    final: Evaluation | None = field(default=None)
    """The best candidate's confirmation in a fresh process."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a run: what was tried and what came of it. Never changed once written."""

    run_id: RunId
    step: int
    """1-based, without gaps."""
    candidate: Candidate
    evaluation: Evaluation
    seconds: float
    """Wall time of the evaluation."""
