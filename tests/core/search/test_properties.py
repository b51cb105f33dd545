"""What holds for every tree, whatever the proposer offers and the judge says."""

import hashlib
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.model.candidate import Candidate, CandidateId, StepKind
from adaexplore.model.evaluation import Correctness, Evaluation, EvaluationStatus, Measurement, Timing
from adaexplore.model.run import RunId, StepRecord
from adaexplore.model.task import Environment
from adaexplore.search.mcts import SearchTree
from adaexplore.search.policy import SearchPolicy
from adaexplore.search.proposal import Proposal
from adaexplore.search.reward import reward
from adaexplore.search.tree import Node

FAILURES = [
    Evaluation(EvaluationStatus.REJECTED, "rules"),
    Evaluation(EvaluationStatus.COMPILE_ERROR, "compile"),
    Evaluation(EvaluationStatus.INCORRECT, "compare"),
]


def evaluation(speedup: float) -> Evaluation:
    return Evaluation(
        EvaluationStatus.PASSED,
        "measure",
        correctness=Correctness("gpu", 1, 0.0, 0.0, 0.0, 0.0),
        measurement=Measurement(Timing(1.0, 1.0, 1.0, 9), Timing(speedup, speedup, speedup, 9), None),
        environment=Environment("3.11", "2.13", "3.6", gpu="a GPU"),
    )


evaluations = st.sampled_from(FAILURES) | st.floats(0.05, 20.0).map(evaluation)
policies = st.builds(
    SearchPolicy,
    exploration=st.floats(0.0, 1.0),
    expand_ratio=st.floats(0.0, 1.0),
    reward_alpha=st.floats(0.0, 1.0),
    p_large=st.floats(0.0, 1.0),
    small_step_limit=st.integers(0, 3),
    pool_size_extra_max=st.integers(0, 3),
)


@dataclass(frozen=True)
class FakeProposer:
    """Has so many candidates for each node and kind, and declines for good after that.

    Its candidates show all of the proposal, as those of a real proposer depend on all of it.
    """

    most: int
    salt: int

    def propose(self, proposal: Proposal) -> Candidate | None:
        parent = None if proposal.parent is None else proposal.parent.candidate.id
        digest = hashlib.sha256(f"{self.salt}:{parent}:{proposal.kind}".encode()).digest()
        for i in range(digest[0] % (self.most + 1)):
            name = f"{parent}/{proposal.kind}{i}"
            if name not in proposal.seen:
                params: dict[str, object] = {"seed": proposal.seed, "pool": proposal.pool, "chain": proposal.chain}
                return Candidate(CandidateId(name), name, "fake", proposal.kind, parent, params)
        return None


def step(tree: SearchTree, proposer: FakeProposer, outcome: Evaluation) -> StepRecord | None:
    while (proposal := tree.ask()) is not None:
        candidate = proposer.propose(proposal)
        if candidate is not None:
            tree.tell(proposal, candidate, outcome)
            return StepRecord(RunId("r"), proposal.step, candidate, outcome, 0.0)
        tree.decline(proposal)
    return None


def outline(tree: SearchTree) -> list[object]:
    return [
        (
            node.index,
            node.judged,
            None if node.parent is None else node.parent.index,
            [child.index for child in node.children],
            (node.visits, node.total_reward, node.max_reward, node.depth, node.created_by),
        )
        for node in tree.nodes
    ]


def branch(node: Node) -> list[Node]:
    return [node, *(descendant for child in node.children for descendant in branch(child))]


@settings(max_examples=60, deadline=None)
@given(policies, st.integers(0, 99), st.integers(1, 3), st.lists(evaluations, max_size=25))
def test_visits_and_rewards_are_those_of_the_branch(
    policy: SearchPolicy, seed: int, most: int, outcomes: list[Evaluation]
) -> None:
    tree = SearchTree(policy, seed)
    for outcome in outcomes:
        step(tree, FakeProposer(most, seed), outcome)
    for node in tree.nodes:
        rewards = [reward(member.evaluation) for member in branch(node) if member.evaluation is not None]
        assert node.visits == len(rewards)
        assert node.visits == sum(child.visits for child in node.children) + (node.index != 0)
        assert node.total_reward == pytest.approx(sum(rewards))
        assert node.max_reward == max(rewards, default=0.0)
        assert all(child.parent is node for child in node.children)
    assert len({node.candidate.id for node in tree.nodes if node.candidate is not None}) == tree.steps


@settings(max_examples=60, deadline=None)
@given(policies, st.integers(0, 99), st.integers(1, 3), st.lists(evaluations, max_size=25), st.data())
def test_a_resumed_tree_goes_on_as_the_uninterrupted_one(
    policy: SearchPolicy, seed: int, most: int, outcomes: list[Evaluation], data: st.DataObject
) -> None:
    proposer = FakeProposer(most, seed)
    uninterrupted = SearchTree(policy, seed)
    records = [step(uninterrupted, proposer, outcome) for outcome in outcomes]
    cut = data.draw(st.integers(0, len(records)))
    resumed = SearchTree(policy, seed)
    resumed.replay(record for record in records[:cut] if record is not None)
    again = [step(resumed, proposer, outcome) for outcome in outcomes[cut:]]
    assert again == records[cut:]
    assert outline(resumed) == outline(uninterrupted)
    assert resumed.best == uninterrupted.best


@settings(max_examples=30, deadline=None)
@given(policies, st.integers(0, 99), st.lists(evaluations, max_size=12))
def test_ask_changes_nothing_and_equal_trees_ask_the_same(
    policy: SearchPolicy, seed: int, outcomes: list[Evaluation]
) -> None:
    one, other = SearchTree(policy, seed), SearchTree(policy, seed)
    for outcome in outcomes:
        assert one.ask() == one.ask() == other.ask()
        step(one, FakeProposer(2, seed), outcome)
        step(other, FakeProposer(2, seed), outcome)


def test_another_seed_grows_another_tree() -> None:
    def kinds(seed: int) -> list[StepKind | None]:
        tree = SearchTree(SearchPolicy(p_large=0.5), seed)
        for _ in range(12):
            step(tree, FakeProposer(250, 1), FAILURES[2])
        return [node.created_by for node in tree.nodes]

    assert len({tuple(kinds(seed)) for seed in range(5)}) > 1
