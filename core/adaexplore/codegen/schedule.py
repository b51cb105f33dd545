"""A schedule space as data: parameters with their ordered choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Schedule = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Choice:
    """One parameter. Neighbours in ``values`` are one small step apart."""

    name: str
    values: tuple[int, ...]
    default: int

    def __post_init__(self) -> None:
        assert self.default in self.values, self


def powers_of_two(low: int, high: int) -> tuple[int, ...]:
    """Give the powers of two from ``low`` to ``high``, both included."""
    values = []
    while low <= high:
        values.append(low)
        low *= 2
    return tuple(values)


def next_power_of_two(n: int) -> int:
    """Give the smallest power of two that is not below ``n``."""
    return 1 << max(n - 1, 0).bit_length()


def defaults(space: tuple[Choice, ...]) -> dict[str, int]:
    """Give each parameter's default."""
    return {choice.name: choice.default for choice in space}
