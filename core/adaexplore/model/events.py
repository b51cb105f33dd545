"""What a running search says, one JSON object a line with ``--json``; the server and the progress bar read these."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.model.candidate import Candidate, StepKind
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.task import Environment


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The module was captured and the search begins; the run is in the store."""

    run_id: str
    path: str
    class_name: str
    policy: str
    workload: str
    """Where shapes came from, in words."""
    shapes: str
    """``x=float32[8192, 4096]``"""
    operators: int
    steps: int
    environment: Environment
    resumed_steps: int = 0
    """Steps that were already in the store."""
    event: str = "run_started"


@dataclass(frozen=True, slots=True)
class StepEvaluated:
    """One candidate was judged and stored."""

    run_id: str
    step: int
    """1-based."""
    steps: int
    kind: StepKind
    candidate_id: str
    summary: str
    status: str
    stage: str
    detail: str
    latency_ms: float | None
    speedup: float | None
    best_speedup: float | None
    best_candidate_id: str | None
    event: str = "step_evaluated"


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The search ended; ``outcome`` says how."""

    run_id: str
    outcome: str
    """``improved`` | ``nothing_better`` | ``verified`` (no GPU: checked, not measured) | ``cancelled`` |
    ``failed`` (no candidate passed)."""
    message: str
    """One sentence for people."""
    steps: int
    seconds: float
    best: Candidate | None
    evaluation: Evaluation | None
    """Of the best."""
    event: str = "run_finished"


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run could not start or go on; nothing was found."""

    error: str
    """Name of the error class."""
    message: str
    hint: str
    exit_code: int
    event: str = "run_failed"


Event = RunStarted | StepEvaluated | RunFinished | RunFailed
