"""What people read: one place for the wording of progress, endings and titles. Pure functions."""

from __future__ import annotations

from adaexplore.model.evaluation import Evaluation, Timing
from adaexplore.model.events import RunFailed, RunFinished
from adaexplore_lsp.jobs import Ending, JobState

NOT_MEASURED = "verified, not measured: no GPU"


def times(ratio: float) -> str:
    """Say ``1.06x``, ``12.0x``, ``120x``: three digits, so that 1.06 is not called 1.1."""
    return f"{ratio:.{2 if ratio < 10 else 1 if ratio < 100 else 0}f}x"


def progress(state: JobState) -> str:
    """Say ``12/30 · best 1.80x``."""
    if not state.steps:
        return "capturing the module"
    best = "" if state.best_speedup is None else f" · best {times(state.best_speedup)}"
    return f"{state.step}/{state.steps}{best}"


def cancel_title(state: JobState) -> str:
    """Say ``Cancel the search (12/30, best 1.8x)``."""
    return f"Cancel the search ({progress(state).replace(' · ', ', ')})"


def speedup(evaluation: Evaluation | None) -> str:
    """Say ``2.30x faster than eager, 1.06x than torch.compile``, or why there is no such number."""
    measurement = None if evaluation is None else evaluation.measurement
    if measurement is None:
        return NOT_MEASURED
    text = f"{times(measurement.speedup)} faster than eager"
    if measurement.speedup_over_compile is not None:
        text += f", {times(measurement.speedup_over_compile)} than torch.compile"
    return text


def short_speedup(evaluation: Evaluation) -> str:
    """Say ``2.30x``, or ``verified, not measured``."""
    measurement = evaluation.measurement
    return "verified, not measured" if measurement is None else times(measurement.speedup)


def ending(ending: Ending) -> str:
    """Say in a line how a search ended."""
    event = ending.event
    if isinstance(event, RunFinished):
        return _finished(event)
    if isinstance(event, RunFailed):
        return event.message
    if ending.cancelled:
        return "cancelled"
    if ending.returncode is not None and ending.returncode < 0:
        return f"the search was killed (signal {-ending.returncode})"
    return f"the search ended without a result (exit code {ending.returncode})"


def _finished(event: RunFinished) -> str:
    match event.outcome:
        case "improved" | "verified":
            return speedup(event.evaluation)
        case "nothing_better":
            return "nothing better found"
        case "cancelled" if event.best is not None:
            return f"cancelled; best so far: {speedup(event.evaluation)}"
        case "cancelled":
            return "cancelled"
        case _:
            return event.message


def is_failure(ending: Ending) -> bool:
    """Tell whether the search could not do its work; to find nothing is no failure."""
    return not ending.cancelled and not isinstance(ending.event, RunFinished)


def notice(name: str, what: Ending) -> str:
    """Give the one message that is shown when a search ends."""
    text = f"AdaExplore: {name}: {ending(what)}"
    if isinstance(what.event, RunFailed) and what.event.hint:
        return f"{text.rstrip('.')}. {what.event.hint}"
    if what.event is None and not what.cancelled:
        return f"{text}. See {what.log}"
    return text


def latency(timing: Timing) -> str:
    """Say ``1.234 ms (1.230 to 1.250)``."""
    return f"{timing.median_ms:.4g} ms ({timing.low_ms:.4g} to {timing.high_ms:.4g})"
