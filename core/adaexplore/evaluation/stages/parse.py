"""Is it Python that defines what it must?"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from adaexplore.evaluation.stage import Findings
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation, EvaluationStatus


@dataclass(frozen=True, slots=True)
class Parse:
    """Parse the source, and put the sidecar's text together."""

    name: ClassVar[str] = "parse"

    function: str
    """The launching function that the source must define."""
    render: Callable[[Candidate], str]
    """Candidate → the sidecar's text."""

    def run(self, candidate: Candidate, findings: Findings) -> Evaluation | None:
        """Reject what does not parse, defines no kernel, or not the function."""
        try:
            tree = ast.parse(candidate.source)
        except (SyntaxError, ValueError) as error:
            return Evaluation(EvaluationStatus.REJECTED, self.name, f"SyntaxError: {error}")
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        if self.function not in functions:
            return Evaluation(EvaluationStatus.REJECTED, self.name, f"it defines no {self.function}")
        if not any("triton.jit" in ast.unparse(d) for node in functions.values() for d in node.decorator_list):
            return Evaluation(EvaluationStatus.REJECTED, self.name, "it defines no @triton.jit kernel")
        findings.code = self.render(candidate)
        return None
