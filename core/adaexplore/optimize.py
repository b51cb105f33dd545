"""Task and settings → the best candidate. The one place that wires everything together; yields what happens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as StopEvent

from adaexplore.capture.export import Subject, capture, opening
from adaexplore.capture.locate import class_source, find_modules, select_module
from adaexplore.capture.workload import workload_of
from adaexplore.config import DEFAULT_STEPS, DEFAULT_STEPS_WITHOUT_GPU, DEFAULT_TARGET, Settings
from adaexplore.errors import UsageError
from adaexplore.executors.local import LocalExecutor
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation, EvaluationStatus
from adaexplore.model.events import Event, RunFinished, RunStarted, StepEvaluated
from adaexplore.model.identity import snake_case, source_hash
from adaexplore.model.run import Run, RunId, RunOutcome, RunSettings, StepRecord
from adaexplore.model.task import Environment, Policy, Task
from adaexplore.proposers.builtin import BuiltinProposer
from adaexplore.replacement.receipt import function_name
from adaexplore.replacement.section import render_code
from adaexplore.replacement.sidecar import header
from adaexplore.search.budget import Budget
from adaexplore.search.mcts import SearchTree
from adaexplore.search.policy import SearchPolicy
from adaexplore.search.reward import rank
from adaexplore.store.store import Store
from adaexplore.worker.client import Stopped

_MOST_CONFIRMATIONS = 3
"""How many of the best are tried again in a fresh process until one keeps its speedup."""
_POLICY = SearchPolicy(reward_alpha=1.0)
"""The paper's numbers, but a node is worth the best below it, not the average: on planted landscapes that took 0.3 to
1.0 times the evaluations (``tests/quality``), and it is the authors' own default on the command line."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked for."""

    path: Path
    name: str | None
    """Class name; None where the file makes the choice plain."""
    policy: Policy
    steps: int | None = None
    """None: the default for a machine with or without a GPU."""
    seconds: float | None = None
    seed: int = 0
    target: str = DEFAULT_TARGET


def read_source(path: Path) -> str:
    """Read a Python file.

    Raises:
        UsageError: It cannot be read as text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(reason=f"{path}: no such file") from None
    except IsADirectoryError:
        raise UsageError(reason=f"{path} is a folder", hint="Name a Python file.") from None
    except UnicodeDecodeError as error:
        raise UsageError(reason=f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise UsageError(reason=f"{path} cannot be read: {error.strerror}") from None


def find_subject(request: Request) -> Subject:
    """Find the module and its workload in the text, without running anything.

    Raises:
        UsageError: No such file or class, no workload, or the file does not parse.
        ConfigurationError: The ``# adaexplore:`` comment is malformed.
    """
    path = request.path.absolute()
    source = read_source(path)
    try:
        modules = find_modules(source)
    except SyntaxError as error:
        raise UsageError(reason=f"{path}:{error.lineno}: the file does not parse: {error.msg}") from None
    module = select_module(modules, request.name, path)
    return Subject(path, source, module, workload_of(source, module), request.policy)


def optimize(request: Request, settings: Settings, store: Store, stop: StopEvent) -> Iterator[Event]:
    """Search for a faster replacement of one module, yielding what happens as it happens.

    Every step is in the store before it is yielded. Setting ``stop`` ends the evaluation in flight at once, keeps the
    best so far and yields ``RunFinished``; before ``RunStarted``, it ends the whole without an event or a run.

    Raises:
        UsageError: No such file or class, no workload.
        CaptureError: The module is refused; the message has the reason and the line.
        WorkerError: The interpreter or the machine is at fault.
        StoreError: The store cannot be written.
    """
    subject = find_subject(request)
    executor = LocalExecutor(replace(settings, target=request.target), stop)
    try:
        environment = executor.hello()
        task, allow_tf32 = capture(subject, executor.main, settings.limits.capture)
        proposer = BuiltinProposer(task, allow_tf32=allow_tf32)  # refuses what has no family
        default_steps = DEFAULT_STEPS if environment.gpu else DEFAULT_STEPS_WITHOUT_GPU
        steps = default_steps if request.steps is None else request.steps
        _open(executor, task, environment)
        run = Run(
            id=RunId(secrets.token_hex(6)),
            task=task,
            settings=RunSettings(steps, request.seconds, request.seed, proposer.name, settings.python, request.target),
            environment=environment,
            created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        with store.lock_run(run.id):
            store.create_run(run)
            yield from _Search(run, store, executor, stop, allow_tf32=allow_tf32).go()
    except Stopped:
        return
    finally:
        executor.close()


def resume(  # noqa: PLR0913 - the command's options
    run_id: str, settings: Settings, store: Store, stop: StopEvent, steps: int | None = None,
    seconds: float | None = None,
) -> Iterator[Event]:  # fmt: skip
    """Continue a run where it stands: the same tree, from what the store holds.

    Args:
        run_id: The id or a unique prefix of it.
        settings: The data folder and limits; the interpreter is the run's own.
        store: Where the run is.
        stop: As for :func:`optimize`.
        steps: A new total; None keeps the run's.
        seconds: A new total; None keeps the run's.

    Raises:
        UsageError: No such run, the module has changed since, or the GPU is another one.
        RunLockedError: Another process is at work on it.
    """
    run = store.get_run(run_id)
    _require_same_source(run.task)
    settings = Settings(settings.data_dir, run.settings.python, run.settings.target, settings.limits)
    executor = LocalExecutor(settings, stop)
    try:
        with store.lock_run(run.id):
            task = run.task
            environment = executor.hello()
            _require_same_gpu(run, environment)
            opened = executor.main.open(
                opening(task.path, task.class_name, task.workload, task.policy), settings.limits.capture
            )
            if not opened["ok"]:
                raise UsageError(reason=f"{task.class_name} cannot be built any more: {opened['message']}")
            _open(executor, task, environment)
            run = store.reopen(run.id, steps)
            search = _Search(run, store, executor, stop, allow_tf32=bool(opened["allow_tf32"]), seconds=seconds)
            yield from search.go()
    except Stopped:
        return
    finally:
        executor.close()


def _open(executor: LocalExecutor, task: Task, environment: Environment) -> None:
    """Build the module in the workers that will judge candidates."""
    names = {
        "function": f"{snake_case(task.class_name)}_forward",
        "decorator": function_name(task.class_name),
    }
    head = header(Path(task.path))
    executor.open(
        task,
        environment,
        names,
        opening(task.path, task.class_name, task.workload, task.policy),
        lambda candidate: f"{head}\n\n{render_code(task, candidate)}",
    )


def _require_same_source(task: Task) -> None:
    source = read_source(Path(task.path))
    try:
        module = select_module(find_modules(source), task.class_name, Path(task.path))
    except SyntaxError as error:
        raise UsageError(reason=f"{task.path}:{error.lineno}: the file does not parse: {error.msg}") from None
    if source_hash(class_source(source, module)) != task.source_hash:
        raise UsageError(
            reason=f"{task.class_name} in {task.path} has changed since the run began",
            hint=f"Start a new run: adaexplore optimize {task.path}::{task.class_name}",
        )


def _require_same_gpu(run: Run, environment: Environment) -> None:
    there, here = run.environment.gpu or "no GPU", environment.gpu or "no GPU"
    if there != here:
        raise UsageError(
            reason=f"run {run.id} was made with {there}, here is {here}: their latencies cannot be compared",
            hint=f"Start a new run: adaexplore optimize {run.task.path}::{run.task.class_name}",
        )


class _Search:
    """One session of work on a run."""

    def __init__(  # noqa: PLR0913 - made in two places of this file
        self, run: Run, store: Store, executor: LocalExecutor, stop: StopEvent, *, allow_tf32: bool,
        seconds: float | None = None,
    ) -> None:  # fmt: skip
        self.run = run
        self.store = store
        self.executor = executor
        self.stop = stop
        self.proposer = BuiltinProposer(run.task, allow_tf32=allow_tf32, n_processors=run.environment.n_processors)
        self.tree = SearchTree(_POLICY, run.settings.seed)
        self.records = list(store.steps(run.id))
        self.tree.replay(self.records)
        self.budget = Budget(run.settings.steps, seconds if seconds is not None else run.settings.seconds)
        self.started = time.monotonic()

    @property
    def elapsed(self) -> float:
        return self.run.seconds + time.monotonic() - self.started

    def go(self) -> Iterator[Event]:
        yield self._started()
        try:
            yield from self._steps()
            confirmed = self._confirm()
        except Stopped:
            confirmed = None
        yield self._finish(confirmed)

    def _started(self) -> RunStarted:
        run, task = self.run, self.run.task
        return RunStarted(
            run_id=run.id,
            path=task.path,
            class_name=task.class_name,
            policy=task.policy,
            workload=f"{task.workload.origin} (line {task.workload.line})",
            shapes=task.shapes,
            operators=len(task.graph.operators),
            steps=run.settings.steps,
            environment=run.environment,
            resumed_steps=len(self.records),
        )

    def _steps(self) -> Iterator[Event]:
        while not self.stop.is_set() and not self.budget.is_spent(self.tree.steps, self.elapsed):
            proposal = self.tree.ask()
            if proposal is None:
                return  # nothing is left to try
            candidate = self.proposer.propose(proposal)
            if candidate is None:
                self.tree.decline(proposal)
                continue
            before = time.monotonic()
            evaluation = self.executor.evaluate(candidate)
            record = StepRecord(self.run.id, proposal.step, candidate, evaluation, time.monotonic() - before)
            self.store.add_step(record)
            self.records.append(record)
            self.tree.tell(proposal, candidate, evaluation)
            yield self._evaluated(record)

    def _evaluated(self, record: StepRecord) -> StepEvaluated:
        measurement = record.evaluation.measurement
        best = self.tree.best
        best_measurement = best.evaluation.measurement if best else None
        return StepEvaluated(
            run_id=self.run.id,
            step=record.step,
            steps=self.run.settings.steps,
            kind=record.candidate.kind,
            candidate_id=record.candidate.id,
            summary=record.candidate.summary,
            status=record.evaluation.status,
            stage=record.evaluation.stage,
            detail=record.evaluation.detail,
            latency_ms=measurement.candidate.median_ms if measurement else None,
            speedup=measurement.speedup if measurement else None,
            best_speedup=best_measurement.speedup if best_measurement else None,
            best_candidate_id=best.candidate.id if best else None,
        )

    # -- the end

    def _confirm(self) -> tuple[StepRecord, Evaluation] | None:
        """Measure the best again in a fresh process; what does not keep its speedup gives way to the next."""
        passed = [r for r in self.records if r.evaluation.status is EvaluationStatus.PASSED]
        if not passed or self.stop.is_set():
            return None
        passed.sort(key=lambda r: rank(r.evaluation), reverse=True)
        if passed[0].evaluation.measurement is None:
            return None
        for record in passed[:_MOST_CONFIRMATIONS]:
            evaluation = self.executor.confirm(record.candidate)
            if evaluation.status is EvaluationStatus.PASSED and is_faster(evaluation):
                return record, evaluation
        return None

    def _best(self) -> StepRecord | None:
        step = self.tree.best_step
        return None if step is None else self.records[step - 1]

    def _finish(self, confirmed: tuple[StepRecord, Evaluation] | None) -> RunFinished:
        best, final = confirmed or (self._best(), None)
        outcome, message = self._outcome(best, final)
        self.store.finish_run(self.run.id, outcome, self.elapsed, best.step if best else None, final)
        candidate: Candidate | None = best.candidate if best else None
        evaluation = final or (best.evaluation if best else None)
        return RunFinished(self.run.id, outcome, message, self.tree.steps, self.elapsed, candidate, evaluation)

    def _outcome(self, best: StepRecord | None, final: Evaluation | None) -> tuple[RunOutcome, str]:
        if self.stop.is_set():
            kept = "the best so far is kept" if best else "nothing had passed yet"
            return RunOutcome.CANCELLED, f"cancelled after {self.tree.steps} steps; {kept}"
        if best is None:
            last = self.records[-1].evaluation.detail if self.records else "there was nothing to try"
            return RunOutcome.FAILED, f"none of {self.tree.steps} candidates passed; the last: {last}"
        if best.evaluation.measurement is None:
            return RunOutcome.VERIFIED, "verified, not measured: no GPU"
        if final is None or final.measurement is None:
            return RunOutcome.NOTHING_BETTER, "no candidate is faster than what is there, beyond the spread"
        over_compile = final.measurement.speedup_over_compile
        text = f"{final.measurement.speedup:.2f}x faster than eager"
        if over_compile is not None:
            text += f", {over_compile:.2f}x than torch.compile"
        return RunOutcome.IMPROVED, text


def is_faster(evaluation: Evaluation) -> bool:
    """Tell whether a candidate is faster than eager: the quartiles of their latencies must not overlap."""
    measurement = evaluation.measurement
    return measurement is not None and measurement.candidate.high_ms < measurement.eager.low_ms
