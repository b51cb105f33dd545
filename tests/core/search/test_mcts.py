from collections.abc import Callable

import pytest

from adaexplore.model.candidate import Candidate, CandidateId, StepKind
from adaexplore.model.evaluation import Evaluation, EvaluationStatus
from adaexplore.model.run import RunId, StepRecord
from adaexplore.search.mcts import SearchTree
from adaexplore.search.policy import SearchPolicy
from adaexplore.search.proposal import Proposal

Passed = Callable[[float | None], Evaluation]
Answer = Callable[[Proposal, str], Candidate]
LARGE, SMALL = StepKind.LARGE, StepKind.SMALL
INCORRECT = Evaluation(EvaluationStatus.INCORRECT, "compare")
ALWAYS_SMALL = SearchPolicy(p_large=0.0)


def grow(tree: SearchTree, *steps: tuple[str, StepKind, str | None, Evaluation]) -> None:
    """Build a tree of a known shape."""
    tree.replay(
        StepRecord(
            RunId("r"),
            step,
            Candidate(CandidateId(name), name, "fake", kind, None if parent is None else CandidateId(parent)),
            evaluation,
            0.0,
        )
        for step, (name, kind, parent, evaluation) in enumerate(steps, tree.steps + 1)
    )


def ids(judged: tuple[object, ...]) -> list[str]:
    return [item.candidate.id for item in judged]  # type: ignore[attr-defined]


def test_the_first_step_is_large_and_from_the_root() -> None:
    proposal = SearchTree(SearchPolicy(), seed=7).ask()
    assert proposal is not None
    assert (proposal.step, proposal.kind, proposal.parent) == (1, LARGE, None)
    assert (proposal.chain, proposal.pool, proposal.seen) == ((), (), frozenset())


def test_the_root_with_one_child_descends_when_exploring_costs_more(passed: Passed) -> None:
    # ln 1 = 0: expansion is not *strictly* better than the only child.
    tree = SearchTree(ALWAYS_SMALL, seed=0)
    grow(tree, ("a", LARGE, None, passed(1.0)))
    proposal = tree.ask()
    assert proposal is not None
    assert proposal.parent is not None
    assert (proposal.kind, proposal.parent.candidate.id, ids(proposal.chain)) == (SMALL, "a", ["a"])


def test_a_poor_only_child_makes_the_root_expand() -> None:
    # Root: N = 3, K = 1: expand bonus 0.3 · sqrt(ln 3); child: visited 3 times, bonus 0.3 · sqrt(ln 3 / 3).
    tree = SearchTree(ALWAYS_SMALL, seed=0)
    grow(tree, ("a", LARGE, None, INCORRECT), ("b", SMALL, "a", INCORRECT), ("c", SMALL, "b", INCORRECT))
    proposal = tree.ask()
    assert proposal is not None
    assert (proposal.kind, proposal.parent) == (LARGE, None)


def test_the_better_of_two_children_is_descended_into(passed: Passed) -> None:
    tree = SearchTree(SearchPolicy(exploration=0.0), seed=0)
    grow(tree, ("a", LARGE, None, passed(1.0)), ("b", LARGE, None, passed(3.0)), ("c", LARGE, None, passed(2.0)))
    proposal = tree.ask()
    assert proposal is not None
    assert proposal.parent is not None
    assert proposal.parent.candidate.id == "b"


def test_a_child_that_was_tried_less_is_explored(passed: Passed) -> None:
    # a: 0.509 + 0.3 · sqrt(ln 4 / 3) = 0.71; b: 0.448 + 0.3 · sqrt(ln 4) = 0.80; expand: 0.509 + 0.3 · sqrt(ln 4) / 2.
    tree = SearchTree(ALWAYS_SMALL, seed=0)
    grow(tree, ("a", LARGE, None, passed(1.0)), ("a2", SMALL, "a", passed(1.0)), ("a3", SMALL, "a2", passed(1.0)))
    grow(tree, ("b", LARGE, None, passed(0.5)))
    proposal = tree.ask()
    assert proposal is not None
    assert proposal.parent is not None
    assert proposal.parent.candidate.id == "b"


def test_a_good_child_that_was_tried_much_makes_its_parent_expand(passed: Passed) -> None:
    # a: 0.994 + 0.3 · sqrt(ln 10 / 9) = 1.15; b: 0.05 + 0.3 · sqrt(ln 10);
    # expand: 0.994 + 0.3 · sqrt(ln 10) / 2 = 1.22.
    tree = SearchTree(ALWAYS_SMALL, seed=0)
    grow(tree, ("a", LARGE, None, passed(5.0)), ("b", LARGE, None, INCORRECT))
    grow(tree, *((f"a{i + 1}", SMALL, f"a{i}" if i else "a", passed(5.0)) for i in range(8)))
    proposal = tree.ask()
    assert proposal is not None
    assert (proposal.kind, proposal.parent) == (LARGE, None)


def test_of_equal_children_the_earlier_is_descended_into(passed: Passed) -> None:
    tree = SearchTree(SearchPolicy(exploration=0.0), seed=0)
    grow(tree, ("a", LARGE, None, passed(2.0)), ("b", LARGE, None, passed(2.0)))
    proposal = tree.ask()
    assert proposal is not None
    assert proposal.parent is not None
    assert proposal.parent.candidate.id == "a"


def test_a_node_with_enough_small_steps_takes_a_large_one(passed: Passed) -> None:
    tree = SearchTree(ALWAYS_SMALL, seed=0)
    grow(tree, ("a", LARGE, None, passed(9.0)), ("b", SMALL, "a", INCORRECT))
    assert _kind_at(tree, "a") is SMALL
    grow(tree, ("c", SMALL, "a", INCORRECT))
    assert _kind_at(tree, "a") is LARGE


def test_large_steps_come_with_their_probability(passed: Passed) -> None:
    kinds = []
    for seed in range(400):
        tree = SearchTree(SearchPolicy(p_large=0.2), seed)
        grow(tree, ("a", LARGE, None, passed(1.0)))
        proposal = tree.ask()
        assert proposal is not None
        kinds.append(proposal.kind)
    assert 50 <= kinds.count(LARGE) <= 110  # 80 expected, standard deviation 8


def test_a_chain_ends_at_the_nearest_large_step_and_holds_five(passed: Passed) -> None:
    tree = SearchTree(SearchPolicy(p_large=0.0, exploration=0.0), seed=0)
    grow(tree, ("r", LARGE, None, passed(1.0)), ("a", LARGE, "r", passed(1.0)))
    chain = ["a"]
    for name in "bcdefg":
        grow(tree, (name, SMALL, chain[-1], passed(1.0)))
        chain.append(name)
        proposal = tree.ask()
        assert proposal is not None
        assert ids(proposal.chain) == chain[-5:]


def test_the_pool_holds_the_best_correct_candidate_of_each_structure_on_the_path(passed: Passed) -> None:
    tree = SearchTree(SearchPolicy(p_large=1.0, exploration=0.0), seed=0)
    grow(
        tree,
        ("other", LARGE, None, passed(0.5)),
        ("a", LARGE, None, passed(2.0)),
        ("a-small", SMALL, "a", passed(3.0)),
        ("a-other-branch", SMALL, "a", passed(5.0)),
        ("a-no-better", SMALL, "a", passed(5.0)),
        ("wrong", LARGE, "a-small", INCORRECT),
        ("c", LARGE, "wrong", passed(9.0)),
    )
    proposal = _proposal_at(tree, "c")
    assert proposal.kind is LARGE
    assert ids(proposal.pool) == ["a-other-branch", "c"]


def test_a_pool_beyond_its_size_is_a_sample(passed: Passed) -> None:
    def pool(seed: int) -> list[str]:
        tree = SearchTree(SearchPolicy(p_large=1.0, exploration=0.0, pool_size=3), seed)
        grow(tree, *((name, LARGE, chr(ord(name) - 1) if name > "a" else None, passed(1.0)) for name in "abcdef"))
        return ids(_proposal_at(tree, "f").pool)

    pools = [pool(seed) for seed in range(20)]
    assert all(len(set(names)) == 3 and set(names) <= set("abcdef") for names in pools)
    assert len({tuple(names) for names in pools}) > 1
    assert pools == [pool(seed) for seed in range(20)]


def test_extras_come_from_off_the_path_where_the_policy_allows(passed: Passed) -> None:
    def pool(extras: int, seed: int) -> list[str]:
        policy = SearchPolicy(p_large=1.0, exploration=0.0, pool_size_extra_max=extras, extra_stop_probability=0.0)
        tree = SearchTree(policy, seed)
        off_path = [(name, LARGE, None, passed(1.0)) for name in "abcd"]
        grow(tree, *off_path, ("wrong", LARGE, None, INCORRECT), ("best", LARGE, None, passed(9.0)))
        return ids(_proposal_at(tree, "best").pool)

    assert {tuple(pool(0, seed)) for seed in range(20)} == {("best",)}
    pools = [pool(2, seed) for seed in range(40)]
    assert {len(names) for names in pools} == {1, 2, 3}
    assert {name for names in pools for name in names} == {"a", "b", "c", "d", "best"}


def test_all_kinds_and_nodes_are_offered_until_everything_is_declined(passed: Passed) -> None:
    tree = SearchTree(SearchPolicy(), seed=1)
    grow(tree, ("a", LARGE, None, passed(1.0)), ("b", SMALL, "a", INCORRECT), ("c", LARGE, None, passed(2.0)))
    offered = []
    while (proposal := tree.ask()) is not None:
        offered.append((proposal.kind, None if proposal.parent is None else proposal.parent.candidate.id))
        tree.decline(proposal)
    every = {(LARGE, None)} | {(kind, name) for kind in StepKind for name in "abc"}
    assert len(offered) == len(every)
    assert set(offered) == every
    grow(tree, ("d", SMALL, "c", INCORRECT))
    assert _kind_at(tree, "d") in StepKind


def test_a_declined_kind_is_followed_by_the_other_at_the_same_node(passed: Passed) -> None:
    tree = SearchTree(ALWAYS_SMALL, seed=0)
    grow(tree, ("a", LARGE, None, passed(1.0)))
    first = tree.ask()
    assert first is not None
    tree.decline(first)
    second = tree.ask()
    assert second is not None
    assert (first.parent, first.kind, second.parent, second.kind) == (second.parent, SMALL, first.parent, LARGE)


def test_the_best_is_passed_fastest_and_earliest(passed: Passed) -> None:
    tree = SearchTree(SearchPolicy(), seed=0)
    assert tree.best is None
    grow(tree, ("a", LARGE, None, INCORRECT))
    assert tree.best is None
    assert tree.best_step is None
    grow(tree, ("b", LARGE, None, passed(2.0)), ("c", LARGE, None, passed(2.0)), ("d", LARGE, None, passed(1.0)))
    assert tree.best is not None
    assert (tree.best.candidate.id, tree.best_step) == ("b", 2)


def test_tell_refuses_what_was_not_proposed(passed: Passed, answer: Answer) -> None:
    tree = SearchTree(ALWAYS_SMALL, seed=0)
    first = tree.ask()
    assert first is not None
    tree.tell(first, answer(first, "a"), passed(1.0))
    second = tree.ask()
    assert second is not None
    with pytest.raises(ValueError, match="told before"):
        tree.tell(second, answer(second, "a"), passed(1.0))
    with pytest.raises(ValueError, match="next step is 2"):
        tree.tell(first, answer(first, "b"), passed(1.0))
    with pytest.raises(ValueError, match="not what was proposed"):
        tree.tell(second, Candidate(CandidateId("b"), "", "fake", LARGE, CandidateId("a")), passed(1.0))
    with pytest.raises(ValueError, match="not what was proposed"):
        tree.tell(second, Candidate(CandidateId("b"), "", "fake", SMALL, None), passed(1.0))
    assert tree.steps == 1
    assert tree.ask() == second


def test_replay_refuses_a_gap_and_an_unknown_parent() -> None:
    record = StepRecord(RunId("r"), 2, Candidate(CandidateId("a"), "", "fake", LARGE), INCORRECT, 0.0)
    with pytest.raises(ValueError, match="next step is 1"):
        SearchTree(SearchPolicy(), 0).replay([record])
    with pytest.raises(ValueError, match="not in the tree"):
        grow(SearchTree(SearchPolicy(), 0), ("a", SMALL, "nobody", INCORRECT))


def _proposal_at(tree: SearchTree, name: str) -> Proposal:
    """Give the first proposal at a node, declining those before it."""
    while (proposal := tree.ask()) is not None:
        if proposal.parent is not None and proposal.parent.candidate.id == name:
            return proposal
        tree.decline(proposal)
    raise AssertionError(f"no proposal at {name}")


def _kind_at(tree: SearchTree, name: str) -> StepKind:
    return _proposal_at(tree, name).kind
