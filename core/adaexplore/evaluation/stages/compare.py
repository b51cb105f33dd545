"""Is it as right as eager, measured against float64?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from adaexplore.evaluation.stage import Findings, ask_about
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Correctness, Evaluation
from adaexplore.model.serialization import from_data, to_data
from adaexplore.model.task import Graph
from adaexplore.worker.client import WorkerClient
from adaexplore.worker.messages import Request


@dataclass(frozen=True, slots=True)
class Compare:
    """Run it on inputs of several kinds and sizes, on the GPU or in Triton's interpreter."""

    name: ClassVar[str] = "compare"

    worker: WorkerClient
    names: dict[str, str]
    graph: Graph
    seconds: float

    def run(self, candidate: Candidate, findings: Findings) -> Evaluation | None:
        """Note the errors."""
        graph = to_data(self.graph)
        arguments = {
            "source": findings.code,
            "graph": {
                key: graph[key] for key in ("inputs", "parameters", "symbols", "size_relations", "output_structure")
            }
            | {"conditions": candidate.params.get("conditions", [])},
            **self.names,
        }
        reply = ask_about(self.worker, Request.COMPARE, arguments, self.seconds, self.name)
        if isinstance(reply, Evaluation):
            return replace(reply, compilation=findings.compilation)
        findings.correctness = from_data(reply["correctness"], Correctness)
        return None
