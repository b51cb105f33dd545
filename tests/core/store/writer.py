"""A process that uses a store, for tests that kill it or run several; and the runs and steps that it writes.

Every line it prints is about something that the store has acknowledged.
"""

import resource
import sys
import time
from pathlib import Path

from adaexplore.errors import StoreUnwritableError
from adaexplore.model.candidate import Candidate, CandidateId, StepKind
from adaexplore.model.evaluation import Evaluation, EvaluationStatus
from adaexplore.model.run import Run, RunId, RunSettings, StepRecord
from adaexplore.model.task import (
    Environment,
    Graph,
    GraphInput,
    InputKind,
    Operator,
    Policy,
    Ref,
    Symbol,
    Task,
    TaskId,
    TensorSpec,
    Workload,
    WorkloadOrigin,
)
from adaexplore.store.sqlite import SqliteStore


def make_run(run_id: str, created_at: str = "2026-01-01T00:00:00Z", path: str = "/p/m.py", name: str = "Norm") -> Run:
    inputs = (GraphInput("x", InputKind.ARGUMENT, "x", ("s0", 4), "float32", True),)
    operators = (Operator("mul", "aten.mul.Tensor", (Ref("x"), 2.0), {}, ("s0", 4), "float32", True, 3),)
    graph = Graph(inputs, operators, ("mul",), "tensor", (Symbol("s0", "x", 0, 5),), (), (), ())
    workload = Workload(WorkloadOrigin.COMMENT_SHAPES, 3, forward={"x": TensorSpec("float32", (5, 4))})
    task = Task(TaskId("t"), path, name, "hash", workload, Policy.USER, graph, {3: "return x * 2"})
    settings = RunSettings(30, None, 0, "builtin", "python", "cuda:90")
    return Run(RunId(run_id), task, settings, Environment("3.11", "2.13", "3.6"), created_at)


def make_step(run_id: str, step: int, name: str | None = None) -> StepRecord:
    candidate_id = CandidateId(name or f"c{step}")
    candidate = Candidate(candidate_id, "x = 1\n" * 20, "builtin", StepKind.LARGE, params={"warps": step})
    return StepRecord(RunId(run_id), step, candidate, Evaluation(EvaluationStatus.INCORRECT, "compare"), 0.5)


def write(data_dir: Path, run_id: str, count: int) -> None:
    store = SqliteStore(data_dir)
    store.create_run(make_run(run_id))
    for step in range(1, count + 1):
        store.add_step(make_step(run_id, step))
        _say(step)


def hold(data_dir: Path, run_id: str) -> None:
    with SqliteStore(data_dir).lock_run(RunId(run_id)):
        _say("locked")
        time.sleep(600)


def fill(data_dir: Path, run_id: str, limit_bytes: int) -> None:
    """Write until a file would grow beyond the limit, which the kernel refuses as it does on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    try:
        write(data_dir, run_id, 10_000)
    except StoreUnwritableError as error:
        _say(f"unwritable: {error}")


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    action, folder, name, *numbers = sys.argv[1:]
    {"write": write, "hold": hold, "fill": fill}[action](Path(folder), name, *map(int, numbers))
