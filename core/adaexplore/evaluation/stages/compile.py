"""Does it compile, for the GPU at hand or for the named target?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adaexplore.evaluation.stage import Findings, ask_about
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Compilation, Evaluation
from adaexplore.model.serialization import from_data
from adaexplore.worker.client import WorkerClient
from adaexplore.worker.messages import Request


@dataclass(frozen=True, slots=True)
class Compile:
    """Compile every launch of the workload."""

    name: ClassVar[str] = "compile"

    worker: WorkerClient
    names: dict[str, str]
    """``function`` and ``decorator``."""
    target: str | None
    """None: the worker's own GPU, where the first launch also runs."""
    seconds: float

    def run(self, candidate: Candidate, findings: Findings) -> Evaluation | None:
        """Note registers, spills and shared memory."""
        arguments = {"source": findings.code, "target": self.target, **self.names}
        reply = ask_about(self.worker, Request.COMPILE, arguments, self.seconds, self.name)
        if isinstance(reply, Evaluation):
            return reply
        findings.compilation = from_data(reply["compilation"], Compilation)
        return None
