"""What a search found, for people: the verdict, where it holds, the numbers, the kernel, and how to use it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from adaexplore.cli.terminal import make_console, print_source
from adaexplore.cli.wording import environment, milliseconds, relative, resources, times
from adaexplore.model.evaluation import Compilation, Correctness, Evaluation, Measurement, Timing
from adaexplore.model.events import RunFinished, RunStarted
from adaexplore.model.run import RunOutcome

_HOW = {"gpu": "on the GPU", "interpreter": "in Triton's interpreter"}


def show_report(started: RunStarted, finished: RunFinished, is_inserted: bool, console: Console | None = None) -> None:
    """Print the report.

    Args:
        started: What was searched for, and where.
        finished: How it ended.
        is_inserted: Whether the kernel is put to use at once, so that nobody needs to be told how.
        console: Instead of standard output.
    """
    console = console or make_console()
    console.print()
    console.print(finished.message, style="bold", soft_wrap=True)
    console.print()
    show_facts(console, _about(started, finished))
    if finished.evaluation is not None:
        show_evaluation(console, finished.evaluation)
    if finished.best is not None:
        console.print()
        print_source(console, finished.best.source)
    for hint in _next_steps(finished, is_inserted):
        console.print()
        console.print(hint, soft_wrap=True)


def show_evaluation(console: Console, evaluation: Evaluation) -> None:
    """Print errors, latencies or what stands for them, and what the compiler says."""
    if evaluation.correctness is not None:
        console.print()
        _show_errors(console, evaluation.correctness)
    console.print()
    if evaluation.measurement is not None:
        _show_latencies(console, evaluation.measurement)
    else:
        _show_unmeasured(console, evaluation)
    if evaluation.compilation is not None and evaluation.compilation.kernels:
        console.print()
        _show_compilation(console, evaluation.compilation)


def _about(started: RunStarted, finished: RunFinished) -> Iterable[tuple[str, str]]:
    yield "module", f"{started.class_name} in {started.path}"
    yield "shapes", started.shapes
    yield "from", started.workload
    yield "policy", started.policy
    yield "environment", environment(started.environment)
    candidates = "1 candidate" if finished.steps == 1 else f"{finished.steps} candidates"
    yield "run", f"{finished.run_id}, {candidates} in {finished.seconds:.1f} s"
    if finished.best is not None:
        yield "best", finished.best.summary or str(finished.best.id)


def _next_steps(finished: RunFinished, is_inserted: bool) -> Iterable[str]:
    outcome, run_id = RunOutcome(finished.outcome), finished.run_id
    if outcome is RunOutcome.CANCELLED:
        yield f"To go on: `adaexplore runs resume {run_id}`."
    if outcome in (RunOutcome.IMPROVED, RunOutcome.VERIFIED) and not is_inserted:
        yield f"To use it: `adaexplore runs insert {run_id}`, or Insert Triton kernel in the editor."
    if outcome is RunOutcome.FAILED:
        yield f"All candidates: `adaexplore runs show {run_id}`."


def show_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one a line; a long value is never cut, so that it can be copied."""
    for name, value in facts:
        console.print(Text.assemble((f"{name:<11}  ", "dim"), value), soft_wrap=True)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=False, header_style="dim")
    table.add_column(first)
    for other in others:
        table.add_column(other, justify="right")
    return table


def _show_errors(console: Console, correctness: Correctness) -> None:
    how = _HOW.get(correctness.how, correctness.how)
    trials = "1 trial" if correctness.trials == 1 else f"{correctness.trials} trials"
    console.print(f"Errors against float64, the worst of {trials} {how}", soft_wrap=True)
    table = _table("", "e = ‖z − y64‖ / ‖y64‖", "m = max|z − y64| / rms(y64)")
    table.add_row("ours", relative(correctness.relative_error), relative(correctness.max_error))
    table.add_row("eager", relative(correctness.eager_relative_error), relative(correctness.eager_max_error))
    console.print(table)
    if correctness.note:
        console.print(correctness.note, soft_wrap=True)


def _show_latencies(console: Console, measurement: Measurement) -> None:
    console.print("Latency, measured in turn in one process")
    table = _table("", "median", "quartiles", "speedup")
    eager = measurement.eager
    rows = [("eager", eager), ("torch.compile", measurement.compiled), ("ours", measurement.candidate)]
    for name, timing in rows:
        if timing is None:
            table.add_row(name, "-", "-", "-")
        else:
            table.add_row(
                name, milliseconds(timing.median_ms), _spread(timing), times(eager.median_ms / timing.median_ms)
            )
    console.print(table)
    if measurement.compiled is None and measurement.compiled_note:
        console.print(f"No torch.compile: {measurement.compiled_note}", soft_wrap=True)
    elif measurement.speedup_over_compile is not None:
        console.print(f"{times(measurement.speedup_over_compile)} vs torch.compile", soft_wrap=True)


def _spread(timing: Timing) -> str:
    return f"{timing.low_ms:.4g} – {timing.high_ms:.4g} ms"


def _show_unmeasured(console: Console, evaluation: Evaluation) -> None:
    without_gpu = evaluation.environment is None or not evaluation.environment.gpu
    text = "not measured: no GPU" if without_gpu else "not measured"
    if evaluation.detail and evaluation.detail != text:
        text += f" ({evaluation.detail})"
    if evaluation.correctness is not None and evaluation.correctness.how == "interpreter":
        text += "; it agrees with the module in Triton's interpreter"
    if evaluation.compilation is not None:
        text += f"; it compiles for {evaluation.compilation.target}"
    console.print(f"{text}.", soft_wrap=True)


def _show_compilation(console: Console, compilation: Compilation) -> None:
    table = _table(f"kernel, for {compilation.target}", "registers", "shared bytes", "spilled bytes", "warps")
    for kernel in compilation.kernels:
        table.add_row(*resources(kernel))
    console.print(table)
