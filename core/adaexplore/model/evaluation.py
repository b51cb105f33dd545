"""What came of a candidate: the stage that decided, errors, latencies, environment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from adaexplore.model.task import Environment


class EvaluationStatus(StrEnum):
    """The outcome. All but the last two say that the candidate failed."""

    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    INCORRECT = "incorrect"
    CONTRACT_BROKEN = "contract_broken"
    UNDECIDED = "undecided"
    """The task itself cannot tell right from wrong."""
    PASSED = "passed"


@dataclass(frozen=True, slots=True)
class Correctness:
    """Errors against float64, the worst over all trials and outputs (DESIGN section 4)."""

    how: str
    """``gpu``, or ``interpreter`` where the kernel ran in Triton's interpreter on the CPU."""
    trials: int
    relative_error: float
    """e = ‖z − y64‖ / ‖y64‖ of the candidate."""
    max_error: float
    """m = max|z − y64| / rms(y64) of the candidate."""
    eager_relative_error: float
    eager_max_error: float
    note: str = ""
    """What a reader must know: a dtype that had to be replaced, a float64 reference that was impossible."""


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What the compiler says of one kernel."""

    name: str
    registers: int | None
    spills: int | None
    """Bytes."""
    shared: int
    """Bytes."""
    num_warps: int
    num_stages: int


@dataclass(frozen=True, slots=True)
class Compilation:
    """Compiled for ``target``; with no GPU nothing more than that is claimed."""

    target: str
    """``cuda:90``"""
    kernels: tuple[KernelResources, ...]


@dataclass(frozen=True, slots=True)
class Timing:
    """Latency in milliseconds: median and quartiles over ``runs`` interleaved runs."""

    median_ms: float
    low_ms: float
    high_ms: float
    runs: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """Latencies of the same call, interleaved in one process, on one GPU."""

    candidate: Timing
    eager: Timing
    compiled: Timing | None
    """``torch.compile`` under the same policy; None where it failed."""
    compiled_note: str = ""
    """Why there is no such baseline."""

    @property
    def speedup(self) -> float:
        """Eager's median over the candidate's."""
        return self.eager.median_ms / self.candidate.median_ms

    @property
    def speedup_over_compile(self) -> float | None:
        """``torch.compile``'s median over the candidate's."""
        return None if self.compiled is None else self.compiled.median_ms / self.candidate.median_ms


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outcome for one candidate.

    **Invariant**: a measurement only if passed, and then with the GPU it was taken on; a passed candidate
    has its errors.
    """

    status: EvaluationStatus
    stage: str
    """The stage that decided."""
    detail: str = ""
    """One sentence, for people: the error with its place, or what was not done."""
    correctness: Correctness | None = None
    compilation: Compilation | None = None
    measurement: Measurement | None = None
    environment: Environment | None = None

    def __post_init__(self) -> None:
        if self.status is EvaluationStatus.PASSED:
            assert self.correctness is not None
        if self.measurement is not None:
            assert self.status is EvaluationStatus.PASSED
            assert self.environment is not None
            assert self.environment.gpu
