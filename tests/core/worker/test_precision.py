"""Flags are set for a policy and put back, and the limits follow them."""

from collections.abc import Iterator

import pytest
import torch

from adaexplore.worker.precision import STRICT_FACTOR, TF32_FACTOR, error_factor, policy_flags, tf32_is_allowed


def flags() -> tuple[str, bool, bool]:
    cudnn, matmul = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    return torch.get_float32_matmul_precision(), cudnn, matmul


@pytest.fixture(params=["highest", "high", "medium"])
def program(request: pytest.FixtureRequest) -> Iterator[str]:
    """What the user's program has switched on."""
    before, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision(before)
    torch.backends.cudnn.allow_tf32 = cudnn


@pytest.mark.parametrize(("policy", "allowed"), [("strict", False), ("tf32", True)])
def test_a_policy_sets_its_flags_and_restores_the_programs(program: str, policy: str, allowed: bool) -> None:
    before = flags()
    with policy_flags(policy):
        assert tf32_is_allowed() == allowed
        assert flags()[1:] == (allowed, allowed)
    assert flags() == before
    with pytest.raises(KeyError), policy_flags(policy):
        raise KeyError
    assert flags() == before


def test_the_users_policy_leaves_the_programs_flags(program: str) -> None:
    before = flags()
    with policy_flags("user"):
        assert flags() == before
        assert error_factor("user") == (STRICT_FACTOR if program == "highest" else TF32_FACTOR)
    assert (error_factor("strict"), error_factor("tf32")) == (2.0, 4.0)
