import dataclasses

import pytest

from adaexplore.capture.workload import workload_of
from adaexplore.errors import UsageError
from adaexplore.model.run import RunOutcome
from adaexplore.replacement.insert import apply_edit, plan_insertion
from adaexplore_lsp.features.hover import describe
from adaexplore_lsp.jobs import JobState
from adaexplore_lsp.results import Result
from adaexplore_lsp.situation import Situation


@pytest.fixture
def hover(make):
    """Give a function that describes Norm, or another class, in some situation."""

    def text_of(name="Norm", text=make.source, **changes):
        document = make.document(text)
        module = document.module_named(name)
        try:
            workload = workload_of(text, module)
        except UsageError as error:
            workload = error
        return describe(Situation(document, module, workload, **changes))

    return text_of


def test_a_module_that_was_not_optimized(hover):
    assert hover() == (
        "**AdaExplore** · not optimized yet\n\n"
        "Shapes: `x=f32[8, 64]`, built with dim=64: shapes in the # adaexplore: comment, line 5"
    )


def test_a_module_without_a_workload_says_what_to_write(hover):
    text = hover("Bare")
    assert text.startswith("**AdaExplore** · no workload\n\nBare (line ")
    assert "`# adaexplore: forward(x=f32[8, 512, 4096])`" in text


def test_a_running_search(hover):
    assert hover(running=JobState(12, 30, 1.8)).startswith("**AdaExplore** · search running: 12/30 · best 1.80x\n")


def test_a_measured_result(make, hover):
    text = hover(result=Result(make.run("/m.py"), make.measured))
    assert text.startswith("**AdaExplore** · 2.30x faster than eager, 1.20x than torch.compile\n\n| |")
    assert "| Triton | 1 ms (0.9 to 1.1) |  |\n" in text
    assert "| eager | 2.3 ms (2.2 to 2.4) | 2.30x |\n" in text
    assert "| torch.compile | 1.2 ms (1.1 to 1.3) | 1.20x |\n" in text
    assert "Error against float64 on the GPU, worst of 6 trials: 1.2e-07 (eager: 1.1e-07)" in text
    assert "`x=float32[8, 64]` · NVIDIA H200 · torch 2.11.0, triton 3.6.0 · policy `user` · 2026-03-01\n\n" in text
    assert text.endswith("line 5")


def test_a_baseline_that_failed_says_why(make, hover):
    measurement = dataclasses.replace(make.measured.measurement, compiled=None, compiled_note="it raised")
    text = hover(result=Result(make.run("/m.py"), dataclasses.replace(make.measured, measurement=measurement)))
    assert "torch.compile: it raised" in text
    assert "| torch.compile" not in text


def test_a_result_without_a_gpu_shows_no_speedup(make, hover):
    run = make.run("/m.py", outcome=RunOutcome.VERIFIED, final=make.verified, environment=make.no_gpu)
    text = hover(result=Result(run, make.verified))
    assert text.startswith("**AdaExplore** · verified, not measured: no GPU\n")
    assert "Compiles for `cuda:90`: 1 kernel. " in text
    assert "in Triton's interpreter" in text
    assert "· no GPU ·" in text
    assert "faster" not in text
    assert "2.3" not in text


@pytest.mark.parametrize(
    ("outcome", "best", "text"),
    [
        (RunOutcome.NOTHING_BETTER, True, "nothing better found: leave it as it is"),
        (RunOutcome.FAILED, False, "no candidate passed"),
        (RunOutcome.CANCELLED, False, "the search was cancelled before it found anything"),
        (RunOutcome.CANCELLED, True, "2.30x faster than eager, 1.20x than torch.compile (search cancelled)"),
    ],
)
def test_other_outcomes(make, hover, outcome, best, text):
    run = make.run("/m.py", outcome=outcome, best_step=1 if best else None, final=make.measured if best else None)
    assert hover(result=Result(run, run.final)).startswith(f"**AdaExplore** · {text}\n")


def test_a_result_of_another_text_is_stale(make, hover):
    text = hover(stale=Result(make.run("/m.py"), make.measured))
    assert text.startswith(
        "**AdaExplore** · stale: the class was changed since the search of 2026-03-01, which found: "
    )


def test_an_inserted_kernel(make, hover):
    document = make.document()
    plan = plan_insertion(document.text, document.path, document.module_named("Norm"), make.section(), None)
    text = apply_edit(document.text, plan.edit)
    receipt = make.section().receipt
    assert "Triton kernel inserted: 2.3x vs eager" in hover(text=text, receipt=receipt)
    assert "receipt is missing" in hover(text=text)
    changed = text.replace("def forward(self, x):\n        return x\n\n\nclass Bare", "x = 1\n\n\nclass Bare")
    assert changed != text
    assert "stale" in hover(text=changed, receipt=receipt)


def test_a_store_that_cannot_be_read_is_told(hover):
    assert "No results: the store is broken" in hover(fault="the store is broken")
