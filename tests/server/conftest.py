import dataclasses
from pathlib import Path

import pytest

from adaexplore.capture.locate import class_source, find_modules
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
from adaexplore.model.identity import source_hash
from adaexplore.model.run import Run, RunId, RunOutcome, RunSettings, StepRecord
from adaexplore.model.task import Environment, Graph, Policy, Task, TaskId, Workload, WorkloadOrigin
from adaexplore.replacement.receipt import Receipt, Section
from adaexplore.store.sqlite import SqliteStore
from adaexplore_lsp.documents import Document, modules_in

SOURCE = """\
import torch
from torch import nn


# adaexplore: init(dim=64) forward(x=f32[8, 64])
@torch.no_grad()
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()

    class Inner(nn.Module):
        def forward(self, x):
            return x

    def forward(self, x):
        return x


class Bare(nn.Module):
    def forward(self, x):
        return x
"""
CORRECTNESS = Correctness("gpu", 6, 1.2e-7, 9e-7, 1.1e-7, 8e-7)
MEASUREMENT = Measurement(
    Timing(1.0, 0.9, 1.1, 20), Timing(2.3, 2.2, 2.4, 20), Timing(1.2, 1.1, 1.3, 20)
)  # 2.3x over eager, 1.2x over torch.compile
H200 = Environment("3.11", "2.11.0", "3.6.0", "12.8", "NVIDIA H200", "570", "9.0")
NO_GPU = Environment("3.11", "2.13.0", "3.6.0")
MEASURED = Evaluation(EvaluationStatus.PASSED, "measure", "", CORRECTNESS, None, MEASUREMENT, H200)
VERIFIED = Evaluation(
    EvaluationStatus.PASSED,
    "measure",
    "not measured: no GPU",
    dataclasses.replace(CORRECTNESS, how="interpreter"),
    Compilation("cuda:90", (KernelResources("norm", 32, 0, 0, 4, 3),)),
    None,
    NO_GPU,
)


def make_document(text=SOURCE, path=Path("/project/my model.py"), version=3):
    return Document(path.as_uri(), path, version, text, modules_in(text))


def make_run(path, text=SOURCE, name="Norm", run_id="r1", **changes):
    """Give a finished, improved, measured run for the class as it is in `text`."""
    module = next(m for m in find_modules(text) if m.name == name)
    graph = Graph((), (), (), "tensor", (), (), (), ())
    workload = module.workload or Workload(WorkloadOrigin.KERNELBENCH, 1)
    digest = source_hash(class_source(text, module))
    task = Task(
        TaskId("t"), str(path), name, digest, workload, Policy.USER, graph, source_lines={}, shapes="x=float32[8, 64]"
    )
    settings = RunSettings(30, None, 0, "builtin", "python", "cuda:90")
    run = Run(RunId(run_id), task, settings, H200, "2026-03-01T12:00:00Z", RunOutcome.IMPROVED, 9.0, 1, MEASURED)
    return dataclasses.replace(run, **changes)


def make_record(run, evaluation=MEASURED, step=1):
    candidate = Candidate(CandidateId(f"c{step}"), "def triton_forward(module, x): ...", "builtin", StepKind.LARGE)
    return StepRecord(run.id, step, candidate, evaluation, 1.0)


def make_section(name="Norm", run_id="r1", text=SOURCE):
    module = next(m for m in find_modules(text) if m.name == name)
    receipt = Receipt(
        source_hash=source_hash(class_source(text, module)), task_id="t", candidate_id="c1", run_id=run_id,
        date="2026-03-01", policy="user", workload="x=float32[8, 64]", torch="2.11.0", triton="3.6.0", how="gpu",
        relative_error=1e-7, max_error=1e-6, eager_relative_error=1e-7, eager_max_error=1e-6, gpu="NVIDIA H200",
        speedup=2.3, speedup_over_compile=1.2,
    )  # fmt: skip
    function = f"triton_{name.lower()}"
    return Section(name, function, f"def {function}(cls):\n    return cls\n", receipt)


class Factories:
    """What the tests build; importable without a path of their own."""

    source = SOURCE
    measured = MEASURED
    verified = VERIFIED
    no_gpu = NO_GPU
    document = staticmethod(make_document)
    run = staticmethod(make_run)
    record = staticmethod(make_record)
    section = staticmethod(make_section)


@pytest.fixture
def make():
    return Factories


@pytest.fixture
def store(tmp_path):
    """Give a function that writes runs and their best steps into a store in `tmp_path`."""

    def write(*runs):
        opened = SqliteStore(tmp_path)
        for run in runs:
            opened.create_run(dataclasses.replace(run, outcome=RunOutcome.OPEN, best_step=None, final=None))
            if run.best_step is not None:
                opened.add_step(make_record(run, run.final or MEASURED))
            if run.outcome is not RunOutcome.OPEN:
                opened.finish_run(run.id, run.outcome, run.seconds, run.best_step, run.final)
        opened.close()
        return tmp_path

    return write
