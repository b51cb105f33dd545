"""An engine that does no work: it writes a small run into the store and gives its events."""

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from adaexplore.capture.locate import class_source, find_modules
from adaexplore.cli.context import Context
from adaexplore.config import Settings, load_settings
from adaexplore.errors import UnsupportedOperatorError
from adaexplore.model.candidate import Candidate, CandidateId, StepKind
from adaexplore.model.evaluation import (
    Compilation,
    Correctness,
    Evaluation,
    EvaluationStatus,
    KernelResources,
    Measurement,
    Timing,
)
from adaexplore.model.events import Event, RunFinished, RunStarted, StepEvaluated
from adaexplore.model.identity import source_hash
from adaexplore.model.run import Run, RunId, RunOutcome, RunSettings, StepRecord
from adaexplore.model.task import (
    Environment,
    ForwardParameter,
    Graph,
    GraphInput,
    InputKind,
    Operator,
    Policy,
    Ref,
    Task,
    TaskId,
    TensorSpec,
    Workload,
    WorkloadOrigin,
)
from adaexplore.optimize import Request
from adaexplore.store.sqlite import SqliteStore
from adaexplore.store.store import Store

MODULE = """\
import torch
from torch import nn


# adaexplore: forward(x=f32[8, 64])
class Twice(nn.Module):
    def forward(self, x):
        return x * 2
"""
SOURCE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def _twice_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < size) * 2, mask=offsets < size)


def twice_forward(module, x):
    out = torch.empty_like(x)
    _twice_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""
GPU = Environment("3.12.3", "2.11.0", "3.6.0", "13.0", "NVIDIA H200", "580.1", "9.0")
CPU = Environment("3.11.7", "2.13.0+cpu", "3.6.0")
COMPILATION = Compilation("cuda:90", (KernelResources("_twice_kernel", 22, 0, 16, 4, 3),))
CHECKED = Correctness("interpreter", 5, 1.24e-7, 8.1e-7, 9.5e-8, 7.2e-7, "bfloat16 was checked as float32")
UNMEASURED = Evaluation(EvaluationStatus.PASSED, "compare", "", CHECKED, COMPILATION, None, CPU)
INCORRECT = Evaluation(EvaluationStatus.INCORRECT, "compare", "output 0 is wrong by e = 0.4", None, COMPILATION)


def measured(speedup: float, compiled: bool = True) -> Evaluation:
    def timing(median: float) -> Timing:
        return Timing(median, median * 0.98, median * 1.03, 100)

    baseline = timing(0.05) if compiled else None
    note = "" if compiled else "torch.compile raised BackendCompilerFailed"
    measurement = Measurement(timing(0.1 / speedup), timing(0.1), baseline, note)
    return Evaluation(
        EvaluationStatus.PASSED, "measure", "", replace(CHECKED, how="gpu", note=""), COMPILATION, measurement, GPU
    )


def make_task(path: Path, text: str = MODULE) -> Task:
    (module,) = find_modules(text)
    inputs = (GraphInput("x", InputKind.ARGUMENT, "x", (8, 64), "float32", True),)
    operators = (Operator("mul", "aten.mul.Tensor", (Ref("x"), 2.0), {}, (8, 64), "float32", True, 8),)
    parameters = (ForwardParameter("x", True, None, None),)
    graph = Graph(inputs, operators, ("mul",), "tensor", (), parameters, (), ())
    workload = Workload(WorkloadOrigin.COMMENT_SHAPES, 5, forward={"x": TensorSpec("float32", (8, 64))})
    code_hash = source_hash(class_source(text, module))
    task_id = TaskId("7a5c")
    lines = {8: "return x * 2"}
    return Task(
        task_id, str(path), module.name, code_hash, workload, Policy.USER, graph, lines, shapes="x=float32[8, 64]"
    )


def make_run(path: Path, run_id: str = "5f0c2a", steps: int = 3, created_at: str = "2026-03-01T14:05:09Z") -> Run:
    settings = RunSettings(steps, None, 0, "builtin", "/usr/bin/python3", "cuda:90")
    return Run(RunId(run_id), make_task(path), settings, GPU, created_at)


def make_candidate(number: int, parent: int | None = None) -> Candidate:
    kind = StepKind.LARGE if parent is None else StepKind.SMALL
    above = None if parent is None else CandidateId(f"c{parent}")
    summary = f"one row a program, {2**number} warps"
    return Candidate(CandidateId(f"c{number}"), f"{SOURCE}\n\nN = {number}\n", "builtin", kind, above, {}, summary)


@dataclass
class FakeEngine:
    """Writes a run of three steps; ``evaluations`` are what came of them."""

    evaluations: tuple[Evaluation, ...] = (INCORRECT, measured(2.0), measured(2.31))
    outcome: RunOutcome = RunOutcome.IMPROVED
    fault: Exception | None = None
    """Raised after the first step."""
    early_fault: Exception | None = None
    """Raised before the first event."""
    captures: bool = True
    """Else it is stopped before that."""
    signals: int = 0
    """SIGINTs that the process gets after the first step."""
    requests: list[object] = field(default_factory=list)
    closed: bool = False

    def optimize(self, request: Request, settings: Settings, store: Store, stop: threading.Event) -> Iterator[Event]:
        self.requests += [request, settings]
        if not self.captures:
            signal.raise_signal(signal.SIGINT)
            return
        if self.early_fault is not None:
            raise self.early_fault
        run = make_run(request.path, steps=len(self.evaluations))
        with store.lock_run(run.id):
            store.create_run(run)
            try:
                yield from self._search(run, store, stop, 0)
            finally:
                self.closed = True

    def resume(
        self,
        run_id: str,
        settings: Settings,
        store: Store,
        stop: threading.Event,
        steps: int | None = None,
        seconds: float | None = None,
    ) -> Iterator[Event]:
        self.requests += [run_id, settings, steps, seconds]
        run = store.reopen(RunId(run_id), steps)
        with store.lock_run(run.id):
            yield from self._search(run, store, stop, len(store.steps(run.id)))

    def _search(self, run: Run, store: Store, stop: threading.Event, done: int) -> Iterator[Event]:
        task = run.task
        yield RunStarted(
            run.id, task.path, task.class_name, task.policy, task.workload.origin, task.shapes, 1, run.settings.steps,
            run.environment, done,
        )  # fmt: skip
        best: StepRecord | None = None
        for step, evaluation in enumerate(self.evaluations[done:], done + 1):
            record = StepRecord(run.id, step, make_candidate(step, step - 1 if step == 3 else None), evaluation, 0.5)
            store.add_step(record)
            if evaluation.status is EvaluationStatus.PASSED:
                best = record
            yield _step_event(record, run, best)
            if self.fault is not None:
                raise self.fault
            for _ in range(self.signals):
                signal.raise_signal(signal.SIGINT)
            if stop.is_set():
                break
        outcome = RunOutcome.CANCELLED if stop.is_set() else self.outcome
        final = best.evaluation if best else None
        store.finish_run(run.id, outcome, 12.34, best.step if best else None, final)
        steps = len(store.steps(run.id))
        message = f"the sentence of {outcome}"
        yield RunFinished(run.id, outcome, message, steps, 12.34, best.candidate if best else None, final)


def _step_event(record: StepRecord, run: Run, best: StepRecord | None) -> StepEvaluated:
    measurement, candidate = record.evaluation.measurement, record.candidate
    best_measurement = best.evaluation.measurement if best else None
    return StepEvaluated(
        run.id, record.step, run.settings.steps, candidate.kind, candidate.id, candidate.summary,
        record.evaluation.status, record.evaluation.stage, record.evaluation.detail,
        measurement.candidate.median_ms if measurement else None, measurement.speedup if measurement else None,
        best_measurement.speedup if best_measurement else None, best.candidate.id if best else None,
    )  # fmt: skip


def make_context(engine: FakeEngine, data_dir: Path) -> Context:
    def settings(python: str | None) -> Settings:
        return load_settings({"ADAEXPLORE_DATA_DIR": str(data_dir)}, python)

    open_store: Callable[[Path], Store] = SqliteStore
    return Context(engine.optimize, engine.resume, settings, open_store)


REFUSED = UnsupportedOperatorError(
    path="model.py", line=7, operator="aten.sort", reason="no family sorts", hint="Leave it out."
)
