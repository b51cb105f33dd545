"""Evaluation → reward, and the order of evaluations: which of two is better."""

from __future__ import annotations

from adaexplore.model.evaluation import Evaluation, EvaluationStatus

NOT_COMPILED_REWARD = 0.0
COMPILED_REWARD = 0.05
"""Compiled, but wrong, crashed, too slow to judge, or breaking the module's contract."""
CORRECT_REWARD = 0.4
"""Reward of a correct candidate at the lowest speedup that still counts."""
SPEEDUP_REWARD = 1.2
"""What the highest speedup adds to ``CORRECT_REWARD``."""
MIN_SPEEDUP, MAX_SPEEDUP = 0.1, 10.0
"""Speedups are clipped to this range, so that one outlier does not rule the tree."""
# Source of all five: AdaExplore (arXiv 2604.16625), the authors' agent/mcts.py.

_STAGES_BEFORE_A_KERNEL_EXISTS = frozenset({"parse", "rules", "compile"})


def reward(evaluation: Evaluation) -> float:
    """Give the reward of a candidate, in [0, 1.6].

    ======================================================================  ==================================
    evaluation                                                              reward
    ======================================================================  ==================================
    ``REJECTED`` or ``COMPILE_ERROR`` at any stage                          0 (not compiled)
    any other failure (a crash, a time-out, out of shared memory …) that
    stage ``parse``, ``rules`` or ``compile`` reports                       0 (not compiled)
    any other failure at a later stage; ``UNDECIDED``                       0.05 (compiled, not correct)
    ``PASSED`` with a measurement                                           ``0.4 + 1.2 (s - 0.1) / 9.9``
    ``PASSED``, not measured (no GPU)                                       the same with s = 1: 0.509
    ======================================================================  ==================================

    s is the speedup over eager, clipped to [0.1, 10].

    Source:
        AdaExplore (arXiv 2604.16625), the authors' ``agent/mcts.py``. There, an error that Triton raises at
        the first launch counts as compiled; here ``COMPILE_ERROR`` is told apart, and counts as what it is.
    """
    if evaluation.status is not EvaluationStatus.PASSED:
        return COMPILED_REWARD if _is_compiled(evaluation) else NOT_COMPILED_REWARD
    measurement = evaluation.measurement
    speedup = 1.0 if measurement is None else measurement.speedup
    clipped = min(max(speedup, MIN_SPEEDUP), MAX_SPEEDUP)
    return CORRECT_REWARD + SPEEDUP_REWARD * (clipped - MIN_SPEEDUP) / (MAX_SPEEDUP - MIN_SPEEDUP)


def rank(evaluation: Evaluation) -> tuple[bool, bool, float]:
    """Give a key that orders evaluations from worst to best: passed, measured, speedup over eager (unclipped).

    A measured candidate ranks above one that is not, whatever its speedup: only the first is known.
    """
    measurement = evaluation.measurement
    passed = evaluation.status is EvaluationStatus.PASSED
    return passed, measurement is not None, 0.0 if measurement is None else measurement.speedup


def better(evaluation: Evaluation, other: Evaluation) -> bool:
    """Say whether ``evaluation`` is strictly better than ``other``; of equals, the earlier step stays the best."""
    return rank(evaluation) > rank(other)


def _is_compiled(evaluation: Evaluation) -> bool:
    if evaluation.status in (EvaluationStatus.REJECTED, EvaluationStatus.COMPILE_ERROR):
        return False
    return evaluation.stage not in _STAGES_BEFORE_A_KERNEL_EXISTS
