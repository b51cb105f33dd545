"""The Family protocol, and the tuple of all families."""

from __future__ import annotations

from typing import Protocol

from adaexplore.codegen.families.matmul import MatmulFamily
from adaexplore.codegen.families.pointwise import PointwiseFamily
from adaexplore.codegen.families.rows import RowsFamily
from adaexplore.codegen.kernel import Emission, KernelText
from adaexplore.codegen.partition import Group, GroupKind
from adaexplore.codegen.schedule import Choice, Schedule


class Family(Protocol):
    """Writes kernels for the groups of one kind.

    All methods are pure: the same arguments give the same text.
    """

    kind: GroupKind

    def structures(self, emission: Emission, group: Group) -> tuple[str, ...]:
        """Give the kernel structures for this group, the most promising first; at least one."""
        ...

    def space(self, emission: Emission, group: Group, structure: str) -> tuple[Choice, ...]:
        """Give the schedule space of a structure, with defaults for the workload's sizes."""
        ...

    def describe(self, structure: str, schedule: Schedule) -> str:
        """Say the choice in a few words."""
        ...

    def emit(self, emission: Emission, group: Group, structure: str, schedule: Schedule, suffix: str) -> KernelText:
        """Write the kernel and its launch."""
        ...


FAMILIES: tuple[Family, ...] = (PointwiseFamily(), RowsFamily(), MatmulFamily())


def family_of(group: Group) -> Family:
    """Give the family that writes ``group``."""
    return next(f for f in FAMILIES if f.kind is group.kind)
