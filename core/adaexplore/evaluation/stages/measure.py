"""How long does it take, beside eager and torch.compile? Always decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from adaexplore.evaluation.stage import Findings, ask_about
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation, EvaluationStatus, Measurement
from adaexplore.model.serialization import from_data
from adaexplore.model.task import Environment
from adaexplore.worker.client import WorkerClient
from adaexplore.worker.messages import Request

NOT_MEASURED = "not measured: no GPU"


@dataclass(frozen=True, slots=True)
class Measure:
    """Time it where there is a GPU; where there is none, it passed and was not measured."""

    name: ClassVar[str] = "measure"

    worker: WorkerClient
    names: dict[str, str]
    environment: Environment
    seconds: float

    def run(self, candidate: Candidate, findings: Findings) -> Evaluation:
        """Give the final evaluation."""
        passed = Evaluation(
            EvaluationStatus.PASSED,
            self.name,
            NOT_MEASURED,
            correctness=findings.correctness,
            compilation=findings.compilation,
            environment=self.environment,
        )
        if not self.environment.gpu:
            return passed
        arguments = {"source": findings.code, **self.names}
        reply = ask_about(self.worker, Request.MEASURE, arguments, self.seconds, self.name)
        if isinstance(reply, Evaluation):
            return replace(reply, correctness=findings.correctness, compilation=findings.compilation)
        return replace(passed, detail="", measurement=from_data(reply["measurement"], Measurement))
