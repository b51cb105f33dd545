import math

import pytest

from adaexplore.search.policy import SearchPolicy, expand_score, node_value, uct_score

POLICY = SearchPolicy()


def test_the_defaults_are_the_papers() -> None:
    assert (POLICY.exploration, POLICY.expand_ratio, POLICY.reward_alpha, POLICY.p_large) == (0.3, 1.0, 0.0, 0.2)
    assert (POLICY.small_step_limit, POLICY.pool_size, POLICY.pool_size_extra_max, POLICY.chain_length) == (2, 5, 0, 5)


def test_the_value_blends_maximum_and_average() -> None:
    policy = SearchPolicy(reward_alpha=0.25)
    assert node_value(policy, total_reward=1.2, max_reward=1.0, visits=3) == pytest.approx(0.25 * 1.0 + 0.75 * 0.4)


def test_uct_adds_the_confidence_of_a_rarely_visited_child() -> None:
    assert uct_score(POLICY, value=0.5, visits=2, parent_visits=7) == pytest.approx(
        0.5 + 0.3 * math.sqrt(math.log(7) / 2)
    )
    assert uct_score(POLICY, value=0.5, visits=0, parent_visits=7) == math.inf


def test_the_bonus_of_expansion_falls_with_the_number_of_children() -> None:
    for children in (1, 2, 3):
        expected = 0.5 + 0.3 * math.sqrt(math.log(7)) / children
        assert expand_score(POLICY, best_child_value=0.5, children=children, visits=7) == pytest.approx(expected)


def test_a_leaf_is_always_expanded_and_weight_zero_never_expands() -> None:
    greedy = SearchPolicy(expand_ratio=0.0)
    assert expand_score(greedy, best_child_value=0.0, children=0, visits=1) == math.inf
    assert expand_score(greedy, best_child_value=0.9, children=1, visits=9) == -math.inf


@pytest.mark.parametrize(
    "wrong", [{"p_large": 1.1}, {"reward_alpha": -0.1}, {"exploration": -1.0}, {"pool_size": 0}, {"chain_length": 0}]
)
def test_a_policy_outside_its_ranges_cannot_be_built(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SearchPolicy(**wrong)  # type: ignore[arg-type]
