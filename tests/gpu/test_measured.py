"""On a GPU: what is measured, and what a candidate can do to the GPU without harm to the next one."""

import threading
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.workshop import Bench, make_candidate, make_settings, read_candidate

from adaexplore.config import Limits
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import EvaluationStatus, Timing
from adaexplore.model.events import RunFinished, StepEvaluated
from adaexplore.model.run import RunOutcome
from adaexplore.model.task import Policy
from adaexplore.optimize import Request, optimize
from adaexplore.store.in_memory import InMemoryStore

pytestmark = pytest.mark.gpu

RMS_NORM = """\
import torch
from torch import nn


# adaexplore: init(dim=2048) forward(x=f32[4096, 2048])
class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
"""
RIGHT, CLASS, _ = read_candidate("honest_rms_norm")
STORE = "    tl.store(hidden_ptr + row * n_cols + cols, hidden, mask=mask)\n"
ALLOCATION = "    out, hidden = torch.empty_like(x), torch.empty_like(x)\n"


def changed(old: str, new: str) -> Candidate:
    assert old in RIGHT.source
    return make_candidate(RIGHT.source.replace(old, new))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("data"), Limits(compile=20.0, compare=60.0))
    bench.open(CLASS)
    yield bench
    bench.executor.close()


@pytest.fixture
def judge(bench: Bench) -> Iterator[Bench]:
    """Whatever the test did, the next candidate is judged as if nothing had been."""
    yield bench
    evaluation = bench.executor.evaluate(RIGHT)
    assert evaluation.status is EvaluationStatus.PASSED, evaluation.detail


def is_ordered(timing: Timing) -> bool:
    return 0 < timing.low_ms <= timing.median_ms <= timing.high_ms and timing.runs >= 5


def test_a_run_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "rms_norm.py"
    path.write_text(RMS_NORM)
    store = InMemoryStore()
    request = Request(path, None, Policy.STRICT, steps=4)
    events = list(optimize(request, make_settings(tmp_path), store, threading.Event()))
    steps = [e for e in events if isinstance(e, StepEvaluated)]
    assert any(e.speedup for e in steps)
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert end.outcome in (RunOutcome.IMPROVED, RunOutcome.NOTHING_BETTER), end.message
    (run,) = store.list_runs()
    assert run.environment.gpu
    assert run.environment.n_processors > 0
    for record in store.steps(run.id):
        measurement = record.evaluation.measurement
        if record.evaluation.status is not EvaluationStatus.PASSED:
            continue
        assert measurement is not None
        assert measurement.compiled is not None, measurement.compiled_note
        assert all(map(is_ordered, (measurement.candidate, measurement.eager, measurement.compiled)))
        assert measurement.speedup == measurement.eager.median_ms / measurement.candidate.median_ms
        assert measurement.speedup_over_compile == measurement.compiled.median_ms / measurement.candidate.median_ms
        assert record.evaluation.correctness is not None
        assert record.evaluation.correctness.how == "gpu"
        assert record.evaluation.compilation is not None
        assert all(k.registers for k in record.evaluation.compilation.kernels)
    # 4096 x 2048 floats in and out at 4.8 TB/s take 14 us: eager's chain reads and writes them several times
    assert run.final is None or run.final.measurement is None or run.final.measurement.candidate.median_ms > 0.008


def test_a_kernel_measured_against_itself_is_as_fast_as_itself() -> None:
    torch = pytest.importorskip("torch")
    from adaexplore.worker.loading import Instance
    from adaexplore.worker.measure import _median, _Timer

    module = torch.nn.LayerNorm(2048).cuda()
    instance = Instance(module, (torch.randn(4096, 2048, device="cuda"),), {}, types.ModuleType("user"))
    timer = _Timer(instance, [module, module, module])
    timer.run(20)
    timer.forget()
    timer.run(200)
    medians = [_median(samples) for samples in timer.samples]
    assert max(medians) <= min(medians) * 1.05, medians


@pytest.mark.parametrize("name", ["honest_rms_norm", "honest_layer_norm", "honest_linear", "honest_near_maximum"])
def test_right_candidates_pass_and_are_measured(bench: Bench, name: str) -> None:
    candidate, class_name, _ = read_candidate(name)
    bench.open(class_name)
    evaluation = bench.executor.evaluate(candidate)
    assert evaluation.status is EvaluationStatus.PASSED, evaluation.detail
    assert evaluation.measurement is not None
    bench.open(CLASS)


@pytest.mark.parametrize(
    "name",
    ["eps_missing", "mask_one_column_short", "off_by_one_row", "weight_cached", "cached_by_pointer", "constant",
     "input_overwritten", "accumulates_in_half", "expanded_zero_stride", "same_output_memory"],
)  # fmt: skip
def test_wrong_candidates_are_incorrect(judge: Bench, name: str) -> None:
    evaluation = judge.executor.evaluate(read_candidate(name)[0])
    assert evaluation.status is EvaluationStatus.INCORRECT, evaluation


@pytest.mark.parametrize("name", ["nan_swallowed_by_relu", "nan_swallowed_by_max"])
def test_nan_is_swallowed_on_a_gpu_as_we_make_the_interpreter_do(bench: Bench, name: str) -> None:
    candidate, class_name, _ = read_candidate(name)
    bench.open(class_name)
    evaluation = bench.executor.evaluate(candidate)
    bench.open(CLASS)
    assert evaluation.status is EvaluationStatus.INCORRECT
    assert "NaN and Inf" in evaluation.detail


def test_an_illegal_access_is_a_crash(judge: Bench) -> None:
    far = changed(STORE, f"{STORE}    tl.store(hidden_ptr + (1 << 44) + cols.to(tl.int64), hidden, mask=mask)\n")
    evaluation = judge.executor.evaluate(far)
    assert evaluation.status is EvaluationStatus.CRASHED, evaluation
    assert "illegal memory access" in evaluation.detail


def test_an_illegal_access_at_other_sizes_only_is_a_crash(judge: Bench) -> None:
    far = changed(
        STORE, f"{STORE}    if odd == 1:\n        tl.store(hidden_ptr + (1 << 44) + cols.to(tl.int64), hidden)\n"
    )
    source = far.source.replace("n_cols, eps, BLOCK", "n_cols, eps, odd, BLOCK").replace(
        "module.eps, BLOCK", "module.eps, x.shape[0] % 2, BLOCK"
    )
    evaluation = judge.executor.evaluate(make_candidate(source))
    assert (evaluation.status, evaluation.stage) == (EvaluationStatus.CRASHED, "compare"), evaluation


def test_an_endless_kernel_is_killed_at_its_limit(judge: Bench) -> None:
    evaluation = judge.executor.evaluate(read_candidate("endless_kernel")[0])
    assert (evaluation.status, evaluation.stage) == (EvaluationStatus.TIMEOUT, "compile"), evaluation


def test_too_much_memory_is_told_as_such(judge: Bench) -> None:
    greedy = changed(ALLOCATION, f"{ALLOCATION}    torch.empty(1 << 42, device=x.device)\n")
    evaluation = judge.executor.evaluate(greedy)
    assert evaluation.status is EvaluationStatus.OUT_OF_MEMORY, evaluation


def test_a_device_assertion_is_a_crash(judge: Bench) -> None:
    failing = changed(ALLOCATION, f"{ALLOCATION}    x.flatten()[torch.tensor([1 << 40], device=x.device)]\n")
    assert judge.executor.evaluate(failing).status is EvaluationStatus.CRASHED


def test_the_policy_decides_how_products_are_computed_and_is_undone() -> None:
    torch = pytest.importorskip("torch")
    from adaexplore.worker.precision import policy_flags

    a, b = (torch.randn(512, 512, device="cuda") for _ in range(2))
    exact = a.double() @ b.double()

    def error() -> float:
        return float((a @ b - exact).norm() / exact.norm())

    before = error()
    with policy_flags("tf32"):
        assert error() > 1e-5
    with policy_flags("strict"):
        assert error() < 1e-6
    assert error() == before
