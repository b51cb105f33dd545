"""Hover on a module's class line: how it stands, in numbers, and where its shapes came from."""

from __future__ import annotations

import re

from lsprotocol import types

from adaexplore.capture.workload import describe_workload
from adaexplore.errors import AdaExploreError
from adaexplore.model.evaluation import Compilation, Correctness, Evaluation, Measurement
from adaexplore.model.run import RunOutcome
from adaexplore.replacement.receipt import summarize
from adaexplore_lsp import messages
from adaexplore_lsp.convert import line_of, markup
from adaexplore_lsp.results import Result
from adaexplore_lsp.server import AdaExploreServer
from adaexplore_lsp.situation import Situation, situation_of


def register(server: AdaExploreServer) -> None:
    """Answer hovers from the decorators to the ``class`` line."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def on_hover(ls: AdaExploreServer, params: types.HoverParams) -> types.Hover | None:
        document = ls.document(params.text_document.uri)
        line = line_of(params.position)
        module = None if document is None else document.module_at(line, line)
        if document is None or module is None or line > module.class_line:
            return None
        return types.Hover(contents=markup(describe(situation_of(ls, document, module)), ls.client_capabilities))


def describe(situation: Situation) -> str:
    """Give the Markdown; its first line is the state."""
    lines = [_state(situation)]
    if situation.running is None and situation.result is not None:
        lines += _result(situation.result)
    if situation.replaced:
        lines.append(_inserted(situation))
    if situation.fault:
        lines.append(f"No results: {situation.fault}")
    lines.append(_workload(situation))
    return f"**AdaExplore** · {lines[0]}" + "".join(f"\n\n{line}" for line in lines[1:])


def _state(situation: Situation) -> str:
    if situation.running is not None:
        return f"search running: {messages.progress(situation.running)}"
    if situation.result is not None:
        return _headline(situation.result)
    if situation.stale is not None:
        day = situation.stale.run.created_at[:10]
        return f"stale: the class was changed since the search of {day}, which found: {_headline(situation.stale)}"
    if isinstance(situation.workload, AdaExploreError):
        return "no workload"
    return "not optimized yet"


def _result(result: Result) -> list[str]:
    lines = [] if result.evaluation is None else _evaluation(result.evaluation)
    return [*lines, _origin(result)]


def _inserted(situation: Situation) -> str:
    if situation.receipt is None:
        return "A Triton kernel is switched on here, but its receipt is missing or was changed."
    if situation.receipt_is_stale:
        return "The inserted Triton kernel is stale: the class was changed since. Optimize again, or revert."
    return f"Triton kernel inserted: {summarize(situation.receipt)}"


def _headline(result: Result) -> str:
    match result.run.outcome:
        case RunOutcome.FAILED:
            return "no candidate passed"
        case RunOutcome.NOTHING_BETTER:
            return "nothing better found: leave it as it is"
        case RunOutcome.CANCELLED if result.evaluation is None:
            return "the search was cancelled before it found anything"
        case RunOutcome.CANCELLED:
            return f"{messages.speedup(result.evaluation)} (search cancelled)"
        case _:
            return messages.speedup(result.evaluation)


def _evaluation(evaluation: Evaluation) -> list[str]:
    lines = []
    if evaluation.measurement is not None:
        lines.append(_measurement(evaluation.measurement))
    elif evaluation.compilation is not None:
        lines.append(_compilation(evaluation.compilation))
    if evaluation.correctness is not None:
        lines.append(_correctness(evaluation.correctness))
    return lines


def _measurement(measurement: Measurement) -> str:
    rows = [("Triton", measurement.candidate, ""), ("eager", measurement.eager, messages.times(measurement.speedup))]
    if measurement.compiled is not None and measurement.speedup_over_compile is not None:
        rows.append(("torch.compile", measurement.compiled, messages.times(measurement.speedup_over_compile)))
    table = ["| | latency (quartiles) | speedup |", "|---|---|---|"]
    table += [f"| {name} | {messages.latency(timing)} | {ratio} |" for name, timing, ratio in rows]
    text = "\n".join(table)
    return text if measurement.compiled is not None else f"{text}\n\ntorch.compile: {measurement.compiled_note}"


def _compilation(compilation: Compilation) -> str:
    count = len(compilation.kernels)
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    return f"Compiles for `{compilation.target}`: {kernels}. No speedup is known."


def _correctness(correctness: Correctness) -> str:
    how = "on the GPU" if correctness.how == "gpu" else "in Triton's interpreter"
    text = (
        f"Error against float64 {how}, worst of {correctness.trials} trials: "
        f"{correctness.relative_error:.1e} (eager: {correctness.eager_relative_error:.1e}), "
        f"largest {correctness.max_error:.1e} (eager: {correctness.eager_max_error:.1e})."
    )
    return f"{text} {correctness.note}".rstrip()


def _origin(result: Result) -> str:
    run = result.run
    environment = run.environment
    shapes = [f"`{run.task.shapes}`"] if run.task.shapes else []
    versions = f"torch {environment.torch}, triton {environment.triton}"
    facts = [*shapes, environment.gpu or "no GPU", versions, f"policy `{run.task.policy}`", run.created_at[:10]]
    return " · ".join(facts)


def _workload(situation: Situation) -> str:
    workload = situation.workload
    if isinstance(workload, AdaExploreError):
        return f"{workload}." + (f"\n\n{workload.hint}" if workload.hint else "")
    text = re.sub(r"\w+=\w+\[[^\]]*\]", r"`\g<0>`", describe_workload(workload))  # Markdown reads f32[8] as a link
    return f"Shapes: {text}"
