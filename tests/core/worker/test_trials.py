"""The inputs that candidates are tried on."""

import types
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from adaexplore.worker.loading import Instance
from adaexplore.worker.sizes import evaluate
from adaexplore.worker.trials import Trial, change_weights, draw_inputs, make_trials

SYMBOLS = [
    {"name": "s0", "input": "x", "dim": 0, "hint": 6},
    {"name": "s1", "input": "x", "dim": 1, "hint": 12},
]


class Sum(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        return x if y is None else x + y


def instance(x: torch.Tensor, y: torch.Tensor | None = None) -> Instance:
    return Instance(Sum(), (x,) if y is None else (x, y), {}, types.ModuleType("user"))


def entry(source: str, *shape: int | str) -> dict[str, Any]:
    return {"name": source, "kind": "argument", "source": source, "shape": list(shape)}


relations = st.lists(
    st.sampled_from(["s0 > 2", "s1 % 4 == 0", "s0 != s1", "s1 == 2*s0", "s0 // (s0 // 2) == 2", "max(s0, s1) > 5"]),
    unique=True,
)


@given(relations, st.booleans())
def test_sizes_keep_the_relations_and_small_ones_are_small(relations: list[str], small: bool) -> None:
    for trial in make_trials(SYMBOLS, relations, small=small):
        if trial.sizes is None:
            continue  # the workload's own
        assert set(trial.sizes) == {"s0", "s1"}
        assert all(size > 0 for size in trial.sizes.values())
        assert all(evaluate(r, trial.sizes) for r in relations), (trial, relations)


def test_the_interpreter_never_gets_the_workloads_own_sizes() -> None:
    large = [s | {"hint": 100_000} for s in SYMBOLS]
    for trial in make_trials(large, [], small=True):
        assert trial.sizes is not None
        assert max(trial.sizes.values()) < 100
    assert any(t.sizes is None for t in make_trials(large, [], small=False))


def test_every_dynamic_size_takes_other_values_one_among_them() -> None:
    seen: dict[str, set[int]] = {"s0": set(), "s1": set()}
    for trial in make_trials(SYMBOLS, [], small=True):
        for name, size in (trial.sizes or {}).items():
            seen[name].add(size)
    for name, sizes in seen.items():
        assert 1 in sizes, name
        assert len(sizes) >= 3
        assert any(size % 2 for size in sizes - {1})


def test_names_are_unique_and_the_workloads_values_come_first() -> None:
    names = [t.name for t in make_trials(SYMBOLS, [], small=False)]
    assert len(set(names)) == len(names)
    assert names[0] == "as given"


def test_the_second_trial_writes_new_values_where_the_first_ones_were() -> None:
    first, second = list(make_trials(SYMBOLS, [], small=True))[:2]
    assert (first.sizes, second.same_memory) == (second.sizes, True)
    assert not first.same_memory


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 3))
def test_values_are_the_workloads_own(rows: int, cols: int, seed: int) -> None:
    own = torch.arange(12.0).view(3, 4) + 100
    trial = Trial("some", lambda x: x, {"s0": rows, "s1": cols}, new_weights=False)
    generator = torch.Generator().manual_seed(seed)
    drawn = draw_inputs(instance(own), trial, [entry("x", "s0", "2*s1")], generator)["x"]
    assert drawn.shape == (rows, 2 * cols)
    assert set(drawn.flatten().tolist()) <= set(own.flatten().tolist())


def test_as_given_is_the_workloads_input_itself_and_a_copy() -> None:
    own = torch.randn(3, 4, requires_grad=True)
    trial = next(make_trials(SYMBOLS, [], small=False))
    drawn = draw_inputs(instance(own), trial, [entry("x", "s0", "s1")], torch.Generator())["x"]
    assert torch.equal(drawn, own)
    assert not drawn.requires_grad
    drawn.zero_()
    assert not torch.equal(drawn, own)


def test_integers_and_booleans_are_never_transformed() -> None:
    x, y = torch.randint(0, 5, (6, 12)), torch.rand(6, 12) > 0.5
    for trial in make_trials(SYMBOLS, [], small=True):
        drawn = draw_inputs(instance(x, y), trial, [entry("x", "s0", "s1"), entry("y", "s0", "s1")], torch.Generator())
        assert drawn["x"].min() >= 0
        assert drawn["x"].max() < 5
        assert drawn["y"].dtype is torch.bool


def test_a_transposed_input_stays_transposed() -> None:
    own = torch.randn(8, 6).t()
    trial = Trial("some", lambda x: x, {"s0": 5, "s1": 7}, new_weights=False)
    drawn = draw_inputs(instance(own), trial, [entry("x", "s0", "s1")], torch.Generator())["x"]
    assert drawn.stride() == (1, 5)


def test_values_chosen_to_hurt() -> None:
    own = torch.randn(64, 64)
    drawn = {}
    for trial in make_trials([], [], small=False):
        drawn[trial.name] = draw_inputs(instance(own), trial, [entry("x", 64, 64)], torch.Generator())["x"]
    assert drawn["large"].abs().max() > 88
    assert drawn["tiny"].abs().max() < 0.01
    assert drawn["negative"].max() <= 0
    assert (drawn["exact zeros and ties"][0] == 0).all()
    assert drawn["exact zeros and ties"].unique().numel() < 30
    assert drawn["NaN and Inf"].isnan().sum() == 1
    assert drawn["NaN and Inf"].isinf().sum() == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_every_float_parameter_and_buffer_changes_in_place(dtype: torch.dtype) -> None:
    module = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3), nn.LayerNorm(3), nn.Embedding(4, 3)).to(dtype)
    before = {name: (value.clone(), value.data_ptr()) for name, value in module.state_dict().items()}
    change_weights(module, torch.Generator().manual_seed(0))
    for name, value in module.state_dict().items():
        old, pointer = before[name]
        assert value.data_ptr() == pointer
        if not value.is_floating_point():
            assert torch.equal(value, old)
        elif "running_mean" not in name:  # zeros stay zero under a factor
            assert not torch.equal(value, old), name
        assert value.isfinite().all()
    assert (module[1].running_var > 0).all()  # type: ignore[operator]
