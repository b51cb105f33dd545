"""Ask what to try next, tell what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from adaexplore.model.candidate import Candidate, CandidateId, StepKind
from adaexplore.model.evaluation import Evaluation, EvaluationStatus
from adaexplore.model.run import StepRecord
from adaexplore.search.policy import SearchPolicy, expand_score, node_value, uct_score
from adaexplore.search.pool import chain, diverse_pool
from adaexplore.search.proposal import Judged, Proposal
from adaexplore.search.reward import better, reward
from adaexplore.search.tree import Node


class SearchTree:
    """The tree of candidates of one run. Not for several threads at once.

    :meth:`ask` changes nothing: until the next :meth:`tell` or :meth:`decline` it gives an equal proposal. It ranks
    all places where the tree could grow, each a node with a kind of step, and takes the first that is not
    exhausted. The ranking depends on the policy, the seed and the candidates told so far, and not on what was
    declined. So a tree rebuilt by :meth:`replay` goes on exactly as the original would have, although nobody stored
    what was declined: it asks for that again, is declined again, and arrives at the same place.
    """

    def __init__(self, policy: SearchPolicy, seed: int) -> None:
        self._policy = policy
        self._seed = seed
        self._nodes = [Node(0)]
        self._by_candidate: dict[CandidateId, Node] = {}
        self._exhausted: set[tuple[int, StepKind]] = set()
        self._best: Node | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes by index: the root, then one for each step."""
        return tuple(self._nodes)

    @property
    def steps(self) -> int:
        """Number of candidates told so far."""
        return len(self._nodes) - 1

    @property
    def best(self) -> Judged | None:
        """The best passed candidate, the earliest of equals; None while none passed."""
        return None if self._best is None else self._best.judged

    @property
    def best_step(self) -> int | None:
        """Step of :attr:`best`."""
        return None if self._best is None else self._best.index

    def ask(self) -> Proposal | None:
        """Give the place to grow next, or None when all places are exhausted."""
        for node, kind in self._openings():
            if (node.index, kind) not in self._exhausted:
                return self._propose(node, kind)
        return None

    def tell(self, proposal: Proposal, candidate: Candidate, evaluation: Evaluation) -> Node:
        """Add ``candidate`` as a child of the node that was to be expanded, and back up its reward.

        Raises:
            ValueError: The proposal is not for the next step or is not of this tree; the candidate is of another
                kind or parent than proposed; or it was told before.
        """
        if proposal.step != self.steps + 1:
            raise ValueError(f"proposal is for step {proposal.step}, the next step is {self.steps + 1}")
        parent = None if proposal.parent is None else proposal.parent.candidate.id
        if (candidate.kind, candidate.parent) != (proposal.kind, parent):
            raise ValueError(f"candidate {candidate.id} is not what was proposed: {proposal.kind} step from {parent}")
        return self._add(candidate, evaluation)

    def decline(self, proposal: Proposal) -> None:
        """Remember that the proposer has nothing new for this node and kind of step, and never will in this run.

        Raises:
            ValueError: The proposal is not of this tree.
        """
        parent = None if proposal.parent is None else proposal.parent.candidate.id
        self._exhausted.add((self._find(parent).index, proposal.kind))

    def replay(self, records: Iterable[StepRecord]) -> None:
        """Add the stored steps of a run, in order, so that the tree is the one that wrote them.

        Raises:
            ValueError: A step is missing or out of order, or a record does not fit the tree.
        """
        for record in records:
            if record.step != self.steps + 1:
                raise ValueError(f"record is of step {record.step}, the next step is {self.steps + 1}")
            self._add(record.candidate, record.evaluation)

    def _add(self, candidate: Candidate, evaluation: Evaluation) -> Node:
        if candidate.id in self._by_candidate:
            raise ValueError(f"candidate {candidate.id} was told before")
        if candidate.parent is None and candidate.kind is StepKind.SMALL:
            raise ValueError(f"candidate {candidate.id} is a small step without a parent")
        parent = self._find(candidate.parent)
        node = Node(self.steps + 1, Judged(candidate, evaluation), parent, candidate.kind)
        parent.children.append(node)
        self._nodes.append(node)
        self._by_candidate[candidate.id] = node
        node.backpropagate(reward(evaluation))
        if evaluation.status is EvaluationStatus.PASSED:
            best = None if self._best is None else self._best.evaluation
            if best is None or better(evaluation, best):
                self._best = node
        return node

    def _find(self, candidate_id: CandidateId | None) -> Node:
        if candidate_id is None:
            return self._nodes[0]
        if candidate_id not in self._by_candidate:
            raise ValueError(f"candidate {candidate_id} is not in the tree")
        return self._by_candidate[candidate_id]

    def _openings(self) -> Iterator[tuple[Node, StepKind]]:
        """Yield every node with every kind of step it admits, the most promising first."""
        ways = [self._ways(self._nodes[0])]
        while ways:
            way = next(ways[-1], None)
            if way is None:
                ways.pop()
            elif isinstance(way, Node):
                ways.append(self._ways(way))
            else:
                yield way

    def _ways(self, node: Node) -> Iterator[Node | tuple[Node, StepKind]]:
        """Yield the arms of the bandit at ``node``, the highest score first: its children, and its own expansion."""
        scored = [(self._score(child, node), child) for child in node.children]
        scored.sort(key=lambda pair: (-pair[0], pair[1].index))
        expansion = expand_score(
            self._policy,
            best_child_value=max((self._value(child) for child in node.children), default=0.0),
            children=len(node.children),
            visits=node.visits,
        )
        better_children = [child for score, child in scored if score >= expansion]
        yield from better_children
        for kind in self._kinds(node):
            yield node, kind
        yield from (child for _, child in scored[len(better_children) :])

    def _score(self, child: Node, parent: Node) -> float:
        return uct_score(self._policy, value=self._value(child), visits=child.visits, parent_visits=parent.visits)

    def _value(self, node: Node) -> float:
        return node_value(self._policy, total_reward=node.total_reward, max_reward=node.max_reward, visits=node.visits)

    def _kinds(self, node: Node) -> tuple[StepKind, ...]:
        """Give the kinds of step that ``node`` admits, the one to try first in front."""
        if node.judged is None:
            return (StepKind.LARGE,)
        small_steps = sum(child.created_by is StepKind.SMALL for child in node.children)
        prefers_large = self._random("kind", node).random() < self._policy.p_large
        if small_steps >= self._policy.small_step_limit or prefers_large:
            return StepKind.LARGE, StepKind.SMALL
        return StepKind.SMALL, StepKind.LARGE

    def _propose(self, node: Node, kind: StepKind) -> Proposal:
        is_large = kind is StepKind.LARGE
        return Proposal(
            step=self.steps + 1,
            kind=kind,
            parent=node.judged,
            chain=() if is_large else chain(node, self._policy),
            pool=diverse_pool(node, self._nodes, self._policy, self._random("pool", node)) if is_large else (),
            seen=frozenset(self._by_candidate),
            seed=self._random("proposer", self._nodes[0]).getrandbits(63),
        )

    def _random(self, purpose: str, node: Node) -> Random:
        return Random(f"{self._seed}:{self.steps + 1}:{purpose}:{node.index}")
