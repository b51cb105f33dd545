"""Numbers and states in words, the same wherever they are shown."""

from __future__ import annotations

from adaexplore.model.evaluation import Evaluation, KernelResources
from adaexplore.model.run import Run, RunOutcome
from adaexplore.model.task import Environment
from adaexplore.store.store import Store


def times(ratio: float) -> str:
    """Give a speedup: ``2.31x``."""
    return f"{ratio:.2f}x" if ratio < 100 else f"{ratio:.0f}x"


def milliseconds(latency_ms: float) -> str:
    """Give a latency with the digits that a measurement has: ``0.0312 ms``."""
    return f"{latency_ms:.4g} ms"


def relative(error: float) -> str:
    """Give an error: ``1.2e-07``."""
    return f"{error:.1e}"


def environment(found: Environment) -> str:
    """Give versions and device: ``Python 3.12.3, torch 2.11.0, triton 3.6.0, NVIDIA H200``."""
    parts = [f"Python {found.python}", f"torch {found.torch}"]
    parts.append(f"triton {found.triton}" if found.triton else "no triton")
    if found.cuda and found.gpu:
        parts.append(f"CUDA {found.cuda}")
    parts.append(found.gpu or "no GPU")
    return ", ".join(parts)


def resources(kernel: KernelResources) -> tuple[str, ...]:
    """Give name, registers, shared memory, spills and warps; a question mark where the compiler does not say."""
    numbers = (kernel.registers, kernel.shared, kernel.spills, kernel.num_warps)
    return kernel.name, *("?" if number is None else str(number) for number in numbers)


def speedup(evaluation: Evaluation | None) -> float | None:
    """Give the measured speedup over eager, where there is one."""
    return evaluation.measurement.speedup if evaluation and evaluation.measurement else None


def state(run: Run, store: Store) -> str:
    """Say how a run stands: its outcome, or ``running`` or ``interrupted`` for one that is open."""
    if run.outcome is not RunOutcome.OPEN:
        return run.outcome.value.replace("_", " ")
    return "running" if store.run_is_active(run.id) else "interrupted"


def started_at(created_at: str) -> str:
    """Give date and time to the minute: ``2026-03-01 14:05``."""
    return created_at[:16].replace("T", " ")
