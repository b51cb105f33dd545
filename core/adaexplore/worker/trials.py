"""The inputs a candidate is tried on: values as the workload's, and values chosen to hurt."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from adaexplore.worker.loading import Instance
from adaexplore.worker.sizes import evaluate


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of inputs.

    ``sizes`` gives each symbol's value; None: the workload's own. ``new_weights``: parameters and buffers are changed
    in place before. ``same_memory``: the values are written into the tensors of the trial before.
    """

    name: str
    transform: Callable[[torch.Tensor], torch.Tensor]
    sizes: dict[str, int] | None
    new_weights: bool
    same_memory: bool = False


def _as_given(x: torch.Tensor) -> torch.Tensor:
    return x


def _large(x: torch.Tensor) -> torch.Tensor:
    return x * 100  # exp overflows at 88


def _tiny(x: torch.Tensor) -> torch.Tensor:
    return x * 1e-3  # squares are of the size of the usual epsilons


def _negative(x: torch.Tensor) -> torch.Tensor:
    return -x.abs()


def _ties(x: torch.Tensor) -> torch.Tensor:
    """Halves, and one row of zeros: equal values, exact zeros, a row without any magnitude."""
    x = (x * 2).round() / 2
    if x.dim():
        x[0] = 0
    return x


def _non_finite(x: torch.Tensor) -> torch.Tensor:
    flat = x.reshape(-1)
    n = flat.numel()
    if n >= 8:
        flat[n // 3], flat[n // 2], flat[n - 2] = float("nan"), float("inf"), -float("inf")
    return x


_PRIMES = (5, 3, 7, 2)
_ODD = (3, 7, 2, 5)
_MIDDLE = (37, 11, 3, 5)


def _sizes(symbols: list[dict[str, Any]], wanted: tuple[int, ...], allowed: Callable[[dict[str, int]], bool]) -> Any:
    """Give sizes near ``wanted`` that the capture's relations allow; None where none were found."""
    names = [s["name"] for s in symbols]
    choices = [(wanted[i % len(wanted)], *_PRIMES, 16, 64, s["hint"]) for i, s in enumerate(symbols)]
    for values in itertools.islice(itertools.product(*choices), 2000):
        sizes = dict(zip(names, values, strict=True))
        if allowed(sizes):
            return sizes
    return None


def make_trials(symbols: list[dict[str, Any]], relations: list[str], *, small: bool) -> Iterator[Trial]:
    """Give the trials, the most telling first.

    Args:
        symbols: The graph's.
        relations: Python conditions on the symbols.
        small: Never use the workload's own sizes: the interpreter takes milliseconds a program.
    """

    def allowed(sizes: dict[str, int]) -> bool:
        return all(evaluate(r, sizes) for r in relations)

    few = _sizes(symbols, _PRIMES, allowed)
    own = few if small else None
    yield Trial("as given", _as_given, own, new_weights=False)
    yield Trial("new weights, as given", _as_given, own, new_weights=True, same_memory=True)
    yield Trial("exact zeros and ties", _ties, _sizes(symbols, _ODD, allowed), new_weights=True)
    yield Trial("tiny", _tiny, few, new_weights=True)
    yield Trial("NaN and Inf", _non_finite, few, new_weights=False)
    yield Trial("large", _large, _sizes(symbols, _MIDDLE if not small else _ODD, allowed), new_weights=True)
    yield Trial("negative", _negative, few, new_weights=True)
    one = _sizes(symbols, (1,), allowed)
    if symbols and one != few:
        yield Trial("sizes of one", _as_given, one, new_weights=False)


def draw_inputs(
    instance: Instance, trial: Trial, inputs: list[dict[str, Any]], generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Give the tensor arguments of forward by name for a trial.

    Values are drawn from the workload's own, so that they keep its distribution, and integers stay in range.

    Args:
        instance: The module and the workload's inputs.
        trial: Which values and sizes.
        inputs: The graph's arguments: source and shape.
        generator: On the inputs' device.
    """
    given = instance.arguments()
    drawn = {}
    for entry in inputs:
        own = given[entry["source"]].detach()
        if trial.sizes is None:
            value = own.clone() if trial.name == "as given" else _resampled(own, own.shape, generator)
        else:
            shape = tuple(d if isinstance(d, int) else evaluate(d, trial.sizes) for d in entry["shape"])
            value = _resampled(own, shape, generator)
        if value.is_floating_point():
            value = trial.transform(value)
        drawn[entry["source"]] = value
    return drawn


def _resampled(own: torch.Tensor, shape: Any, generator: torch.Generator) -> torch.Tensor:
    count = 1
    for size in shape:
        count *= size
    index = torch.randint(own.numel(), (count,), generator=generator, device=own.device)
    value = own.reshape(-1)[index].reshape(shape)
    if own.dim() > 1 and not own.is_contiguous() and own.transpose(-1, -2).is_contiguous():
        value = value.transpose(-1, -2).contiguous().transpose(-1, -2)
    return value


def change_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Change every float parameter and buffer in place, keeping signs and magnitudes plausible.

    Factors between 0.5 and 1.5 keep variances positive; an added normal makes zeros (fresh biases) count.
    """
    with torch.no_grad():
        for tensor in module.parameters():
            if tensor.is_floating_point():
                noise = torch.randn(tensor.shape, generator=generator, device=tensor.device)
                spread = max(float(tensor.float().std(unbiased=False)), 0.1 * float(tensor.float().abs().mean()), 0.05)
                tensor.add_((noise * spread).to(tensor.dtype))
        for tensor in module.buffers():
            if tensor.is_floating_point():
                factor = torch.rand(tensor.shape, generator=generator, device=tensor.device) + 0.5
                tensor.mul_(factor.to(tensor.dtype))
