"""Groups with structures and schedules → one readable Python source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.codegen.kernel import Emission
from adaexplore.codegen.lowering.context import LoweredGraph
from adaexplore.codegen.naming import Names, access, signature
from adaexplore.codegen.operators import HELPER_PARAMETERS, HELPERS
from adaexplore.codegen.partition import Group, GroupKind
from adaexplore.codegen.registry import family_of
from adaexplore.codegen.schedule import Schedule
from adaexplore.codegen.values import Input, Matmul, View, operands_of
from adaexplore.model.identity import snake_case
from adaexplore.model.task import InputKind, Task


@dataclass(frozen=True, slots=True)
class Choice:
    """How one group is done: a family's structure and schedule; empty for library calls and views."""

    structure: str = ""
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class Emitted:
    """The source of a candidate."""

    source: str
    function: str
    """``rms_norm_forward``: takes the module and forward's arguments."""
    conditions: tuple[str, ...]
    """On sizes; where they do not hold the original must run."""
    call_conditions: tuple[str, ...]
    """The same on forward's arguments and on ``module``."""


def new_emission(task: Task, lowered: LoweredGraph, *, allow_tf32: bool, n_processors: int) -> Emission:
    """Give the context for one candidate's kernels."""
    return Emission(task, lowered, Names(task, lowered), snake_case(task.class_name), allow_tf32, n_processors)


def emit(emission: Emission, groups: Sequence[Group], choices: Sequence[Choice]) -> Emitted:
    """Write the source that computes ``groups`` as ``choices`` say."""
    kernels: list[str] = []
    launches: list[str] = []
    suffixes = _suffixes(emission, groups)
    for group, choice, suffix in zip(groups, choices, suffixes, strict=True):
        if group.kind is GroupKind.VIEW:
            launches += _view(emission, group)
        elif group.kind is GroupKind.LIBRARY:
            launches += _library(emission, group)
        else:
            assert choice.schedule is not None
            text = family_of(group).emit(emission, group, choice.structure, choice.schedule, suffix)
            kernels.append(text.kernel)
            launches += text.launch if len(kernels) == 1 else ("", *text.launch)
    function = f"{emission.prefix}_forward"
    parts = ["import torch\nimport triton\nimport triton.language as tl", *_helpers(emission), *kernels]
    parts.append(_forward(emission, function, launches))
    conditions = (tuple(dict.fromkeys(c)) for c in (emission.conditions, emission.call_conditions))
    return Emitted("\n\n\n".join(parts) + "\n", function, *conditions)


def _suffixes(emission: Emission, groups: Sequence[Group]) -> list[str]:
    """Name kernels after what they do, where there are several."""
    real = [g for g in groups if g.kind not in (GroupKind.VIEW, GroupKind.LIBRARY)]
    if len(real) == 1:
        return ["" for _ in groups]
    suffixes: list[str] = []
    for group in groups:
        wanted = emission.names[group.outputs[-1]] if group.outputs else group.kind.value
        suffix, count = wanted, 1
        while suffix in suffixes:
            count += 1
            suffix = f"{wanted}_{count}"
        suffixes.append(suffix)
    return suffixes


def _helpers(emission: Emission) -> list[str]:
    texts = []
    for name in sorted(emission.helpers):
        head = f"@triton.jit\ndef _{emission.prefix}_{name}({HELPER_PARAMETERS[name]}):"
        texts.append("\n".join([head, *(f"    {line}" for line in HELPERS[name])]))
    return texts


def _view(emission: Emission, group: Group) -> list[str]:
    value = emission.lowered.values[group.members[0]]
    assert isinstance(value, View)
    shape = ", ".join(emission.size(d) for d in value.shape)
    return [f"{emission.names[value.name]} = {emission.names.outside(value.operand)}.reshape({shape})"]


def _library(emission: Emission, group: Group) -> list[str]:
    product = emission.lowered.values[group.members[0]]
    assert isinstance(product, Matmul)
    left, right = emission.names.outside(product.left), emission.names.outside(product.right)
    result = emission.names[group.members[-1]]
    lines = []
    if len(group.members) > 1:
        bias = emission.names.outside(next(n for n in group.inputs if n not in (product.left, product.right)))
        lines.append(f"{result} = torch.nn.functional.linear({left}, {right}, {bias})")
    elif product.right_is_transposed:
        lines.append(f"{result} = torch.nn.functional.linear({left}, {right})")
    else:
        lines.append(f"{result} = torch.matmul({left}, {right})")
    return lines


def _forward(emission: Emission, function: str, launches: Sequence[str]) -> str:
    graph = emission.task.graph
    lines = [f"def {function}({signature(graph, 'module')}):"]
    has_weights = any(entry.kind is InputKind.PARAMETER for entry in graph.inputs)
    what = "; weights are read from ``module`` at each call" if has_weights else ""
    lines.append(f'    """Compute what ``{emission.task.class_name}.forward`` does{what}."""')
    lines += [f"    {name} = {argument}" for name, argument in emission.names.renamed.items()]
    read = {o for v in emission.lowered.values.values() for o in operands_of(v)} | set(emission.lowered.outputs)
    for value in emission.lowered.values.values():
        if isinstance(value, Input) and value.source.kind is not InputKind.ARGUMENT and value.name in read:
            lines.append(f"    {emission.names[value.name]} = {access(value.source.source)}")
    imports = dict.fromkeys(line.strip() for line in launches if line.strip().startswith("from "))
    lines[2:2] = [*(f"    {line}" for line in imports), *([""] if imports else [])]
    lines += _without_repetition([f"    {line}".rstrip() for line in launches if line.strip() not in imports])
    names = [emission.names.outside(o) for o in emission.lowered.outputs]
    result = {
        "tensor": names[0],
        "tuple": f"({', '.join(names)},)" if len(names) == 1 else ", ".join(names),
        "list": f"[{', '.join(names)}]",
    }[emission.lowered.output_structure]
    lines.append(f"    return {result}")
    return "\n".join(lines)


def _without_repetition(lines: Sequence[str]) -> list[str]:
    """Leave out ``n_rows = …`` where it is the same as before."""
    kept: list[str] = []
    current: dict[str, str] = {}
    for line in lines:
        name, is_assignment, _ = line.partition(" = ")
        if is_assignment and name.strip() in ("n_rows", "n_elements"):
            if current.get(name) == line:
                continue
            current[name] = line
        kept.append(line)
    return kept
