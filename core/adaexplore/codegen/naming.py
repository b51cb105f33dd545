"""Names for the emitted source: the user's own wherever a line assigns one."""

from __future__ import annotations

import keyword
import re

from adaexplore.codegen.lowering.context import LoweredGraph
from adaexplore.codegen.values import Input
from adaexplore.model.task import InputKind, Task

_ASSIGNMENT = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?::[^=]+)?(?:[+\-*/]?=)(?!=)")
_RESERVED = frozenset(keyword.kwlist) | {
    "acc", "cols", "k", "ks", "mask", "module", "n_cols", "n_elements", "n_rows", "offsets", "out_ptr", "outs", "pid",
    "range", "row", "rows", "start", "tl", "torch", "triton",
}  # fmt: skip
_LABELS = {"pow": "power", "sum": "total", "max": "largest", "min": "smallest", "where": "chosen", "to_copy": "value"}


class Names:
    """A valid, unique identifier for each value."""

    def __init__(self, task: Task, lowered: LoweredGraph) -> None:
        self._taken: set[str] = set(_RESERVED)
        self._by_value: dict[str, str] = {}
        inputs = [v for v in lowered.values.values() if isinstance(v, Input)]
        leaves = [v.source.source.rsplit(".", 1)[-1] for v in inputs]
        for entry, leaf in zip(inputs, leaves, strict=True):
            unique = leaves.count(leaf) == 1 or entry.source.kind is InputKind.ARGUMENT
            self._by_value[entry.name] = self._free(leaf if unique else entry.source.source.replace(".", "_"))
        last_on_line: dict[int, str] = {}
        for value in lowered.values.values():
            if value.line is not None:
                last_on_line[value.line] = value.name
        for value in lowered.values.values():
            if isinstance(value, Input):
                continue
            wanted = _LABELS.get(value.label, value.label)
            if value.line is not None and last_on_line[value.line] == value.name:
                match = _ASSIGNMENT.match(task.source_lines.get(value.line, ""))
                if match:
                    wanted = match["name"]
                elif value.name in lowered.outputs:
                    wanted = "out"
            self._by_value[value.name] = self._free(wanted)

    def _free(self, wanted: str) -> str:
        wanted = re.sub(r"\W", "_", wanted)
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def __getitem__(self, value: str) -> str:
        return self._by_value[value]
