"""Names for the emitted source: the user's own wherever a line assigns one."""

from __future__ import annotations

import keyword
import re

from adaexplore.codegen.lowering.context import LoweredGraph
from adaexplore.codegen.values import Input, Pointwise
from adaexplore.model.task import Graph, InputKind, Task

_ASSIGNMENT = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?::[^=]+)?(?:[+\-*/]?=)(?!=)")
_OUTSIDE = frozenset(keyword.kwlist) | {
    "TensorDescriptor", "float", "min", "module", "n_elements", "n_ins", "n_outs", "n_rows", "n_waves", "split",
    "tiles_down", "tl", "torch", "triton",
}  # fmt: skip
"""What the launching function uses itself."""
_INSIDE = _OUTSIDE | {
    "acc", "cols", "first_m", "first_out", "group_size", "in_row", "k", "ks", "last_out", "mask", "n_cols", "n_tiles_m",
    "n_tiles_n", "offsets", "outs", "range", "row", "rows", "start", "start_m", "start_n", "tile",
}  # fmt: skip
"""What kernels use themselves."""
_LABELS = {
    "add": "added", "amax": "largest", "amin": "smallest", "div": "ratio", "exp": "exps", "log": "logs",
    "max": "largest", "min": "smallest", "mul": "scaled", "pow": "power", "sub": "difference", "sum": "total",
    "to_copy": "value", "where": "chosen",
}  # fmt: skip
"""Names for values that no line assigns."""


def access(path: str, root: str = "module") -> str:
    """Give the expression for a dotted path below a module: ``module.layers[0].weight``."""
    text = root
    for part in path.split("."):
        text += f".{part}" if part.isidentifier() else f"[{part}]" if part.isdigit() else f'._modules["{part}"]'
    return text


def signature(graph: Graph, first: str) -> str:
    """Give forward's parameters behind ``first``, with their defaults, as they stand between the parentheses."""
    parts = [first]
    for index, parameter in enumerate(graph.parameters):
        if parameter.keyword_only and not (index and graph.parameters[index - 1].keyword_only):
            parts.append("*")
        parts.append(parameter.name if parameter.default is None else f"{parameter.name}={parameter.default}")
    return ", ".join(parts)


class Names:
    """A valid, unique identifier for each value.

    The same inside a kernel and in the function that launches it, but for arguments: outside they have the name that
    forward's signature gives them, whatever it is.
    """

    def __init__(self, task: Task, lowered: LoweredGraph) -> None:
        self._taken: set[str] = {parameter.name for parameter in task.graph.parameters}
        self._by_value: dict[str, str] = {}
        self._outside: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        """Arguments under another name in the launching function: their name there → forward's."""
        inputs = [v for v in lowered.values.values() if isinstance(v, Input)]
        leaves = [v.source.source.rsplit(".", 1)[-1] for v in inputs]
        for entry, leaf in zip(inputs, leaves, strict=True):
            if entry.source.kind is InputKind.ARGUMENT:
                self._name_argument(entry)
            else:
                self._by_value[entry.name] = self._free(
                    leaf if leaves.count(leaf) == 1 else entry.source.source.replace(".", "_")
                )
        copied = _labels_of_copies(lowered)
        last_on_line: dict[int, str] = {}
        for value in lowered.values.values():
            if value.line is not None:
                last_on_line[value.line] = value.name
        for value in lowered.values.values():
            if isinstance(value, Input):
                continue
            label = copied.get(value.name, value.label)
            wanted = _LABELS.get(label, label)
            if value.line is not None and last_on_line[value.line] == value.name:
                match = _ASSIGNMENT.match(task.source_lines.get(value.line, ""))
                if match:
                    wanted = match["name"]
                elif value.name in lowered.outputs:
                    wanted = "out"
            self._by_value[value.name] = self._free(wanted)

    def _name_argument(self, entry: Input) -> None:
        name = entry.source.source
        self._by_value[entry.name] = name if name not in _INSIDE else self._free(name)
        self._outside[entry.name] = name if name not in _OUTSIDE else self._by_value[entry.name]
        if name in _OUTSIDE:
            self.renamed[self._outside[entry.name]] = name

    def outside(self, value: str) -> str:
        """Give the name of a value in the launching function."""
        return self._outside.get(value, self._by_value[value])

    def _free(self, wanted: str) -> str:
        wanted = re.sub(r"\W", "_", wanted)
        if wanted in _INSIDE or wanted[:1].isdigit():
            wanted = f"value_{wanted}" if wanted[:1].isdigit() else f"{wanted}_value"
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def __getitem__(self, value: str) -> str:
        return self._by_value[value]


def _labels_of_copies(lowered: LoweredGraph) -> dict[str, str]:
    """Give changed labels: a change of dtype is named after what it changes, which then rarely needs a name."""
    changed: dict[str, str] = {}
    for name, users in lowered.users().items():
        value = lowered.values[name]
        only = lowered.values[users[0]] if len(users) == 1 else None
        if isinstance(value, Input) or not isinstance(only, Pointwise) or only.template != "{0}":
            continue
        changed[only.name] = changed.get(name, value.label)
        changed[name] = "value"
    return changed
