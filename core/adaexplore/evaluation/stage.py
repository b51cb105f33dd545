"""What a stage is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from adaexplore.errors import WorkerCrashedError, WorkerError, WorkerTimeoutError
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Compilation, Correctness, Evaluation, EvaluationStatus
from adaexplore.worker.client import WorkerClient
from adaexplore.worker.messages import Fault, Request


@dataclass(slots=True)
class Findings:
    """What earlier stages found out about the candidate at hand."""

    code: str = ""
    """The sidecar's text: what is evaluated is what is inserted."""
    compilation: Compilation | None = None
    correctness: Correctness | None = None


class Stage(Protocol):
    """One question about a candidate, asked before any dearer one.

    A stage returns ``None`` to pass the candidate on, having noted what it found, or the ``Evaluation`` that ends the
    pipeline. It raises only for a fault of its own (no device, a worker that does not start): a candidate's fault is a
    status.
    """

    name: ClassVar[str]
    """Stored with each evaluation; never renamed without a migration."""

    def run(self, candidate: Candidate, findings: Findings) -> Evaluation | None:
        """Ask the question."""
        ...


def ask_about(
    worker: WorkerClient, request: Request, arguments: dict[str, Any], seconds: float, stage: str
) -> dict[str, Any] | Evaluation:
    """Ask a worker about a candidate; gives the reply, or the evaluation where the candidate is at fault.

    A worker that was killed, died, or lost its GPU context is replaced before the next request.

    Raises:
        WorkerError: The fault is not the candidate's.
    """
    try:
        reply = worker.ask(request, arguments, seconds)
    except WorkerTimeoutError:
        return Evaluation(EvaluationStatus.TIMEOUT, stage, f"not done after {seconds:g} s; its process was killed")
    except WorkerCrashedError as error:
        return Evaluation(EvaluationStatus.CRASHED, stage, f"its process died: {error.details['reason']}")
    if reply["ok"]:
        return reply
    if reply["fault"] == Fault.CANDIDATE:
        status = EvaluationStatus(reply["status"])
        if status is EvaluationStatus.CRASHED:
            worker.kill()
        return Evaluation(status, stage, str(reply["message"]))
    raise WorkerError(reason=f"the worker failed: {reply['message']}", hint=f"Its log ends: {worker.log_tail()}")
