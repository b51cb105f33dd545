"""When to descend, when to expand, and how: hyper-parameters and the two scores.

Source of everything here: AdaExplore (arXiv 2604.16625), section "Explore", and the authors' ``agent/mcts.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchPolicy:
    """Hyper-parameters of the tree search; the defaults are the paper's for KernelBench level 2, 50 steps.

    **Invariant**: probabilities and weights lie in [0, 1]; counts are not negative; pool, chain and temperature
    are positive.
    """

    exploration: float = 0.3
    """c: weight of what is little tried against what is known to be good."""
    expand_ratio: float = 1.0
    """ρ: how much the expand arm is explored compared with a child; 0.5 in the paper's level 3."""
    reward_alpha: float = 0.0
    """a: 1 values a node by its best descendant, 0 by the average."""
    p_large: float = 0.2
    """Probability of a large step where a small one is possible too; constant, without a schedule."""
    small_step_limit: int = 2
    """A node with so many small-step children tries a large step first."""
    pool_size: int = 5
    """Most candidates in the pool of a large step, from the path to the root."""
    pool_size_extra_max: int = 0
    """Most candidates from branches off the path, where the path gives fewer than ``pool_size``."""
    extra_stop_probability: float = 0.6
    """p of the truncated geometric distribution of the number of such extras, P(k) ∝ (1 - p)^k."""
    extra_temperature: float = 1.0
    """T of the softmax over speedups that picks the extras."""
    chain_length: int = 5
    """Most candidates in the chain of a small step."""

    def __post_init__(self) -> None:
        for name in ("reward_alpha", "p_large", "extra_stop_probability"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} lies in [0, 1]: {getattr(self, name)}")
        for name in ("exploration", "expand_ratio", "small_step_limit", "pool_size_extra_max"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is not negative: {getattr(self, name)}")
        for name in ("pool_size", "chain_length", "extra_temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is positive: {getattr(self, name)}")


def node_value(policy: SearchPolicy, *, total_reward: float, max_reward: float, visits: int) -> float:
    """Give the value Q of a node that was visited.

    ``Q(n) = a · max_reward + (1 - a) · total_reward / visits``

    Source:
        ``agent/mcts.py``: the blended value; a = ``reward_alpha``.
    """
    return policy.reward_alpha * max_reward + (1.0 - policy.reward_alpha) * total_reward / visits


def uct_score(policy: SearchPolicy, *, value: float, visits: int, parent_visits: int) -> float:
    """Give the score of descending into a child.

    ``Q(c) + c · sqrt(ln N_parent / N_c)``; infinite for a child without visits.

    Source:
        Kocsis and Szepesvári, "Bandit based Monte-Carlo Planning" (UCT), 2006, as in ``agent/mcts.py``;
        c = ``exploration``.
    """
    if visits == 0:
        return math.inf
    return value + policy.exploration * math.sqrt(math.log(parent_visits) / visits)


def expand_score(policy: SearchPolicy, *, best_child_value: float, children: int, visits: int) -> float:
    """Give the score of adding a child to a node instead of descending.

    ``max_c Q(c) + c · ρ · sqrt(ln N / K²)`` for K children, so the bonus falls like 1 / K. Infinite without
    children (a leaf is always expanded), minus infinity where c · ρ is zero.

    Source:
        ``agent/mcts.py``: expansion is an arm of the bandit, taken when strictly greater than the best child's
        score; c = ``exploration``, ρ = ``expand_ratio``.
    """
    if children == 0:
        return math.inf
    weight = policy.exploration * policy.expand_ratio
    if weight <= 0.0:
        return -math.inf
    return best_child_value + weight * math.sqrt(math.log(visits) / children**2)
