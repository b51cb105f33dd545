"""Run stages until one decides."""

from __future__ import annotations

from collections.abc import Sequence

from adaexplore.evaluation.stage import Findings, Stage
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation


def evaluate(candidate: Candidate, stages: Sequence[Stage]) -> Evaluation:
    """Give the verdict of the first stage that has one; the last stage always has."""
    findings = Findings()
    for stage in stages:
        evaluation = stage.run(candidate, findings)
        if evaluation is not None:
            return evaluation
    raise AssertionError("the last stage did not decide")
