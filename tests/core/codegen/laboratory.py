"""Modules of the fixtures, captured and judged in one worker that interprets kernels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from adaexplore.capture.export import Subject, capture, opening
from adaexplore.capture.locate import find_modules
from adaexplore.capture.workload import workload_of
from adaexplore.evaluation.pipeline import evaluate
from adaexplore.evaluation.stage import Findings, Stage
from adaexplore.evaluation.stages.compare import Compare
from adaexplore.evaluation.stages.compile import Compile
from adaexplore.evaluation.stages.measure import Measure
from adaexplore.evaluation.stages.parse import Parse
from adaexplore.model.candidate import Candidate, StepKind
from adaexplore.model.evaluation import Evaluation, EvaluationStatus
from adaexplore.model.identity import snake_case
from adaexplore.model.task import Environment, Policy, Task
from adaexplore.proposers.builtin import BuiltinProposer
from adaexplore.replacement.receipt import function_name
from adaexplore.replacement.section import render_code
from adaexplore.replacement.sidecar import header
from adaexplore.search.proposal import Judged, Proposal
from adaexplore.worker.client import WorkerClient

MODULES = Path(__file__).parents[2] / "fixtures" / "modules"
ZOO = MODULES / "zoo"
SECONDS = 120.0
_NOWHERE = Environment("", "", "")


def classes(*files: Path) -> list[tuple[Path, str]]:
    """Give the classes with a workload of ``files``."""
    found = []
    for path in files:
        source = path.read_text(encoding="utf-8")
        found += [(path, m.name) for m in find_modules(source) if m.workload is not None]
    return found


def subject_of(path: Path, name: str, policy: Policy = Policy.STRICT) -> Subject:
    source = path.read_text(encoding="utf-8")
    module = next(m for m in find_modules(source) if m.name == name)
    return Subject(path, source, module, workload_of(source, module), policy)


def names_of(task: Task) -> dict[str, str]:
    return {"function": f"{snake_case(task.class_name)}_forward", "decorator": function_name(task.class_name)}


def render(task: Task, candidate: Candidate) -> str:
    return f"{header(Path(task.path))}\n\n{render_code(task, candidate)}"


def ask(kind: StepKind, parent: Candidate | None = None, seen: frozenset[str] = frozenset(), seed: int = 0) -> Proposal:
    """Give a proposal as the search tree would."""
    judged = None if parent is None else Judged(parent, Evaluation(EvaluationStatus.INCORRECT, "compare"))
    return Proposal(len(seen) + 1, kind, judged, (judged,) if judged else (), (), seen, seed)


def all_large(proposer: BuiltinProposer) -> Iterator[Candidate]:
    """Give every structure with its default schedule."""
    seen: frozenset[str] = frozenset()
    while (candidate := proposer.propose(ask(StepKind.LARGE, seen=seen))) is not None:
        yield candidate
        seen |= {candidate.id}


def wandered(proposer: BuiltinProposer, start: Candidate, random: Random, n_steps: int) -> Candidate:
    """Give a random candidate of the same structure: ``n_steps`` small steps away."""
    candidate = start
    for _ in range(n_steps):
        step = proposer.propose(ask(StepKind.SMALL, candidate, seed=random.randrange(2**32)))
        candidate = step or candidate
    return candidate


@dataclass(slots=True)
class Laboratory:
    """One worker, kept alive."""

    worker: WorkerClient
    tasks: dict[tuple[Path, str], Task] = field(default_factory=dict)

    def capture(self, path: Path, name: str, policy: Policy = Policy.STRICT) -> Task:
        subject = subject_of(path, name, policy)
        task, _ = capture(subject, self.worker, SECONDS)
        self.tasks[path, name] = task
        return task

    def _open(self, task: Task) -> None:
        reply = self.worker.open(opening(task.path, task.class_name, task.workload, task.policy), SECONDS)
        assert reply["ok"], reply

    def compare(self, task: Task, candidate: Candidate) -> Evaluation:
        """Give the verdict of Triton's interpreter."""
        self._open(task)
        names = names_of(task)
        stages: tuple[Stage, ...] = (
            Parse(names["function"], lambda c: render(task, c)),
            Compare(self.worker, names, task.graph, SECONDS),
            Measure(self.worker, names, _NOWHERE, SECONDS),
        )
        return evaluate(candidate, stages)

    def compile(self, task: Task, candidate: Candidate, target: str) -> str:
        """Give what Triton's compiler says against it; the worker must not be one that interprets."""
        self._open(task)
        names, findings = names_of(task), Findings()
        stages: tuple[Stage, ...] = (
            Parse(names["function"], lambda c: render(task, c)),
            Compile(self.worker, names, target, SECONDS),
        )
        for stage in stages:
            evaluation = stage.run(candidate, findings)
            if evaluation is not None:
                return evaluation.detail
        return ""


def interpreting(folder: Path) -> Laboratory:
    return Laboratory(WorkerClient(sys.executable, folder / "interpreter.log", interpret=True))


def compiling(folder: Path) -> Laboratory:
    return Laboratory(WorkerClient(sys.executable, folder / "worker.log"))
