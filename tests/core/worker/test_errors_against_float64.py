"""The judge: what passes and what does not, as properties of the numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.worker.errors_against_float64 import errors, finite_mismatch, judge
from adaexplore.worker.precision import FLOORS

NAN, INF = math.nan, math.inf
values = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=20)
scales = st.floats(1e-6, 1e6)


def tensor(*numbers: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


@given(values)
def test_what_is_exact_has_no_error_and_passes(numbers: list[float]) -> None:
    exact = tensor(*numbers, dtype=torch.float64)
    result = exact.float()
    verdict = judge(result, result, result.double(), 2.0)
    assert (verdict.fault, verdict.candidate.relative, verdict.candidate.largest) == ("", 0.0, 0.0)


@given(values, st.integers(0, 10), scales)
def test_errors_do_not_depend_on_scale_order_or_sign(numbers: list[float], seed: int, scale: float) -> None:
    exact = tensor(*numbers, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    result = exact + torch.randn(exact.shape, generator=generator, dtype=torch.float64)
    own = errors(result, exact)
    order = torch.randperm(exact.numel(), generator=generator)
    for other in (errors(result * scale, exact * scale), errors(result[order], exact[order]), errors(-result, -exact)):
        assert other.relative == pytest.approx(own.relative, rel=1e-6)
        assert other.largest == pytest.approx(own.largest, rel=1e-6)


@given(values)
def test_the_largest_error_is_between_the_mean_and_the_sum(numbers: list[float]) -> None:
    exact = tensor(*numbers, dtype=torch.float64) + 2e3
    own = errors(exact + torch.linspace(0, 1, exact.numel(), dtype=torch.float64), exact)
    assert own.relative <= own.largest * (1 + 1e-9)
    assert own.largest <= own.relative * exact.numel() ** 0.5 * (1 + 1e-9)


@given(st.floats(2.0, 4.0), st.floats(0.0, 8.0))
def test_the_limit_is_a_multiple_of_eagers_error(factor: float, times: float) -> None:
    exact = torch.linspace(1, 2, 64, dtype=torch.float64)
    error = torch.where(torch.arange(64) % 2 == 0, 1.0, -1.0).double() * 1e-3
    eager, result = (exact + error).float(), (exact + error * times).float()
    assert (judge(result, eager, exact, factor).fault == "") == (times <= factor) or times == pytest.approx(factor)


@pytest.mark.parametrize("dtype", FLOORS)
def test_floors_let_the_roundings_of_a_dtype_pass(dtype: torch.dtype) -> None:
    exact = torch.linspace(-3, 3, 999, dtype=torch.float64)
    eager = exact.to(dtype)
    exact = eager.double()  # eager has no error at all
    eps = torch.finfo(dtype).eps
    some = torch.arange(999) % 10 == 0
    assert judge((exact * (1 + eps * some)).to(dtype), eager, exact, 2.0).fault == ""
    assert judge((exact * (1 + 40 * eps)).to(dtype), eager, exact, 2.0).fault != ""


def test_one_value_far_off_is_seen_though_the_mean_is_fine() -> None:
    exact = torch.ones(1_000_000, dtype=torch.float64)
    result = exact.float()
    result[123456] += 5e-4
    verdict = judge(result, exact.float(), exact, 2.0)
    assert verdict.candidate.relative < FLOORS[torch.float32][0]
    assert verdict.fault.startswith("largest error")


def test_a_reference_of_zeros_admits_zeros_only() -> None:
    zeros = torch.zeros(4)
    assert judge(zeros, zeros, zeros.double(), 2.0).fault == ""
    assert judge(-zeros, zeros, zeros.double(), 2.0).fault == ""
    assert judge(tensor(0, 0, 1e-30, 0), zeros, zeros.double(), 2.0).fault != ""


def test_nothing_at_all_is_right() -> None:
    empty = torch.empty(0)
    assert judge(empty, empty, empty.double(), 2.0).fault == ""


@pytest.mark.parametrize(
    ("result", "eager", "exact", "fine"),
    [
        (NAN, NAN, NAN, True),
        (INF, INF, INF, True),
        (INF, -INF, -INF, False),
        (-INF, INF, INF, False),
        (1.0, NAN, NAN, False),  # swallowed
        (0.0, INF, INF, False),
        (NAN, INF, INF, False),
        (NAN, 1.0, 1.0, False),
        (INF, 1.0, 1.0, False),
        (1.0, INF, 1.0, True),  # more exact than eager, which overflowed
        (INF, INF, 1.0, True),
        (NAN, INF, 1.0, False),
        (INF, NAN, INF, True),  # as float64 has it
        (NAN, NAN, INF, True),
        (1.0, 1.0, INF, True),  # float64's own accident
        (1.0, 1.0, NAN, True),
        (2.0, INF, NAN, False),
    ],
)
def test_positions_of_nan_and_inf(result: float, eager: float, exact: float, fine: bool) -> None:
    around = tensor(1, 2, 3)
    found = finite_mismatch(
        torch.cat([around, tensor(result)]), torch.cat([around, tensor(eager)]), torch.cat([around, tensor(exact)])
    )
    assert (found == "") == fine
    if not fine:
        assert "1 of 4 values differ in being finite; at flat index 3" in found


@given(st.permutations([NAN, INF, -INF, 1.0, 2.0]))
def test_non_finite_values_do_not_hide_wrong_finite_ones(numbers: list[float]) -> None:
    exact = tensor(*numbers, dtype=torch.float64)
    right = exact.float()
    assert judge(right, right, exact, 2.0).fault == ""
    wrong = torch.where(right == 2.0, 2.1, right)
    assert "error" in judge(wrong, right, exact, 2.0).fault


def test_a_nan_of_ours_alone_never_passes() -> None:
    right = torch.ones(8)
    wrong = right.clone()
    wrong[3] = NAN
    assert judge(wrong, right, right.double(), 1e9).fault != ""
