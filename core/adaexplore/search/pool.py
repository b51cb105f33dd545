"""The context of a proposal: the chain of a small step, the diverse pool of a large one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random

from adaexplore.model.candidate import StepKind
from adaexplore.model.evaluation import EvaluationStatus
from adaexplore.search.policy import SearchPolicy
from adaexplore.search.proposal import Judged
from adaexplore.search.reward import rank
from adaexplore.search.tree import Node


def chain(node: Node, policy: SearchPolicy) -> tuple[Judged, ...]:
    """Give the way from the nearest large step down to ``node``, its last ``chain_length`` members at most."""
    members: list[Judged] = []
    for ancestor in node.path_up():
        if ancestor.judged is None or len(members) == policy.chain_length:
            break
        members.append(ancestor.judged)
        if ancestor.created_by is StepKind.LARGE:
            break
    return tuple(reversed(members))


def diverse_pool(node: Node, nodes: Sequence[Node], policy: SearchPolicy, random: Random) -> tuple[Judged, ...]:
    """Give the candidates a large step at ``node`` may learn from: the best correct one of each structure.

    A structure is a large step with all that small steps made of it. Those on the path from the root come first,
    a random sample where there are more than ``pool_size``; where there are fewer, extras from off the path may
    fill up (none with the paper's ``pool_size_extra_max`` of 0). In the order of their steps.

    Source:
        AdaExplore (arXiv 2604.16625), the authors' ``agent/mcts.py``: diverse pool of the large step.
    """
    on_path = [ancestor for ancestor in node.path_up() if ancestor.created_by is StepKind.LARGE]
    pool = _bests(on_path)
    if len(pool) >= policy.pool_size:
        pool = random.sample(pool, policy.pool_size)
    else:
        off_path = [other for other in nodes if other.created_by is StepKind.LARGE and other not in on_path]
        pool += _extras(_bests(off_path), policy.pool_size - len(pool), policy, random)
    return tuple(best.judged for best in sorted(pool, key=lambda best: best.index) if best.judged is not None)


def _bests(large_steps: Iterable[Node]) -> list[Node]:
    bests = []
    for large_step in large_steps:
        best = max(large_step.component(), key=lambda node: (_rank(node), -node.index))
        if best.evaluation is not None and best.evaluation.status is EvaluationStatus.PASSED:
            bests.append(best)
    return bests


def _extras(candidates: list[Node], room: int, policy: SearchPolicy, random: Random) -> list[Node]:
    """Draw extras: their number geometrically, truncated; which ones by softmax of speedup, without replacement."""
    most = min(room, policy.pool_size_extra_max, len(candidates))
    weights = [(1.0 - policy.extra_stop_probability) ** k for k in range(most + 1)]
    count = random.choices(range(most + 1), weights)[0]
    remaining, extras = list(candidates), []
    for _ in range(count):
        speedups = [_speedup(node) for node in remaining]
        top = max(speedups)
        odds = [math.exp((speedup - top) / policy.extra_temperature) for speedup in speedups]
        extra = random.choices(remaining, odds)[0]
        remaining.remove(extra)
        extras.append(extra)
    return extras


def _rank(node: Node) -> tuple[bool, bool, float]:
    assert node.evaluation is not None
    return rank(node.evaluation)


def _speedup(node: Node) -> float:
    measurement = None if node.evaluation is None else node.evaluation.measurement
    return 1.0 if measurement is None else measurement.speedup
