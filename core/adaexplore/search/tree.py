"""A node of the tree: a candidate, its outcome, and what its branch brought so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from adaexplore.model.candidate import Candidate, StepKind
from adaexplore.model.evaluation import Evaluation
from adaexplore.search.proposal import Judged


@dataclass(slots=True, eq=False)
class Node:
    """One evaluated candidate, or the root, which has none.

    **Invariant**: the root alone has neither candidate, evaluation, parent nor kind. ``visits`` is the number of
    candidates in the node's branch: the node itself (the root does not count) and all its descendants, so it is
    the sum of the children's visits, plus one except at the root. ``total_reward`` and ``max_reward`` are the sum
    and the maximum of the rewards of the same candidates.
    """

    index: int
    """Step of the candidate; 0 is the root."""
    judged: Judged | None = None
    parent: Node | None = field(default=None, repr=False)
    created_by: StepKind | None = None
    children: list[Node] = field(default_factory=list, repr=False)
    """In the order of their steps."""
    visits: int = 0
    total_reward: float = 0.0
    max_reward: float = 0.0

    def __post_init__(self) -> None:
        assert (self.index == 0) == (self.judged is None) == (self.parent is None) == (self.created_by is None)

    @property
    def candidate(self) -> Candidate | None:
        """The candidate; None at the root."""
        return None if self.judged is None else self.judged.candidate

    @property
    def evaluation(self) -> Evaluation | None:
        """The candidate's outcome; None at the root."""
        return None if self.judged is None else self.judged.evaluation

    @property
    def depth(self) -> int:
        """Edges from the root."""
        return sum(1 for _ in self.path_up()) - 1

    def path_up(self) -> Iterator[Node]:
        """Yield this node, its parent, and so on up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def component(self) -> Iterator[Node]:
        """Yield this node and all that small steps made from it, directly or in turn: one structure, tuned."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(child for child in node.children if child.created_by is StepKind.SMALL)

    def backpropagate(self, reward: float) -> None:
        """Count one more candidate with ``reward`` at this node and at all its ancestors."""
        for node in self.path_up():
            node.max_reward = reward if node.visits == 0 else max(node.max_reward, reward)
            node.visits += 1
            node.total_reward += reward
