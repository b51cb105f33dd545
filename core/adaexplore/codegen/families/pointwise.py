"""Fused pointwise chains: any number of inputs, any broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from adaexplore.codegen.kernel import Emission, KernelText, KernelWriter, line_range, upcast
from adaexplore.codegen.partition import Group, GroupKind
from adaexplore.codegen.schedule import Choice, Schedule, powers_of_two
from adaexplore.codegen.values import Pointwise
from adaexplore.model.task import Dim, InputKind

INT32_LIMIT = 2**31


class PointwiseFamily:
    """One program computes ``BLOCK`` consecutive elements of the broadcast result."""

    kind = GroupKind.POINTWISE

    def structures(self, emission: Emission, group: Group) -> tuple[str, ...]:
        """Give the kernel structures for this group, the most promising first."""
        return ("flat",)

    def space(self, emission: Emission, group: Group, structure: str) -> tuple[Choice, ...]:
        """Give the schedule space."""
        return (Choice("block", powers_of_two(256, 8192), 1024), Choice("num_warps", (1, 2, 4, 8, 16), 4))

    def describe(self, structure: str, schedule: Schedule) -> str:
        """Say the choice in a few words."""
        return f"{schedule['block']} elements a program, {schedule['num_warps']} warps"

    def emit(self, emission: Emission, group: Group, structure: str, schedule: Schedule, suffix: str) -> KernelText:
        """Write the kernel."""
        writer = KernelWriter(emission, group, suffix)
        shape = group.space.full
        dims = _collapsed(emission, group)
        emission.conditions.append(f"{' * '.join(map(str, shape)) or 1} < {INT32_LIMIT}")
        writer.line("offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)")
        writer.line("mask = offsets < n_elements")
        for name in group.inputs:
            _load(writer, name, dims, shape)
        for member in group.members:
            value = emission.lowered.values[member]
            assert isinstance(value, Pointwise)
            writer.assign(value, writer.expression(value))
        setup = []
        for output in group.outputs:
            value = emission.lowered.values[output]
            pointer = writer.pointer(output)
            writer.line(f"tl.store({pointer} + offsets, {writer.reference(output)}, mask=mask)")
            setup.append(allocation(emission, output))
        writer.argument("n_elements", "n_elements")
        writer.constant("BLOCK", str(schedule["block"]))
        docstring = [
            f"One block of {names_of(emission, group.outputs)}; replaces {line_range(emission, group.members)}."
        ]
        setup.append(f"n_elements = {emission.product(shape)}")
        grid = f"(triton.cdiv(n_elements, {schedule['block']}),)"
        launch = writer.launch(grid, [f"num_warps={schedule['num_warps']}"])
        return KernelText(writer.kernel(docstring), (*setup, *launch))


def _patterns(emission: Emission, group: Group) -> list[tuple[bool, ...]]:
    rank = len(group.space.full)
    patterns = []
    for name in group.inputs:
        shape = emission.lowered.values[name].shape
        padded = (1,) * (rank - len(shape)) + shape
        patterns.append(tuple(d == 1 and f != 1 for d, f in zip(padded, group.space.full, strict=True)))
    return patterns


def _collapsed(emission: Emission, group: Group) -> list[list[int]]:
    """Merge neighbouring dimensions along which every input is either there or repeated."""
    patterns = _patterns(emission, group)
    merged: list[list[int]] = []
    for dim in range(len(group.space.full)):
        if merged and all(p[merged[-1][-1]] == p[dim] for p in patterns):
            merged[-1].append(dim)
        else:
            merged.append([dim])
    return merged


def _load(writer: KernelWriter, name: str, dims: Sequence[Sequence[int]], shape: tuple[Dim, ...]) -> None:
    emission = writer.emission
    value = emission.lowered.values[name]
    pointer = writer.pointer(name, contiguous(emission, name))
    if all(d == 1 for d in value.shape):
        writer.line(f"{emission.names[name]} = tl.load({pointer}){upcast(value.dtype)}")
        return
    index = "offsets" if value.shape == shape else _index(writer, value.shape, dims, shape)
    other = "0" if "int" in value.dtype or value.dtype == "bool" else "0.0"
    load = f"tl.load({pointer} + {index}, mask=mask, other={other}){upcast(value.dtype)}"
    writer.line(f"{emission.names[name]} = {load}")


def _index(writer: KernelWriter, own: tuple[Dim, ...], dims: Sequence[Sequence[int]], shape: tuple[Dim, ...]) -> str:
    """Give the offset in a contiguous tensor of shape ``own`` that is repeated to ``shape``."""
    padded = (1,) * (len(shape) - len(own)) + own
    terms: list[str] = []
    own_stride: list[str] = []
    after: list[str] = []
    for position in range(len(dims) - 1, -1, -1):
        group = dims[position]
        size_name = f"size_{position}"
        repeated = all(padded[d] == 1 for d in group)
        if not repeated:
            index = "offsets" if not after else f"offsets // {_times(after)}"
            if position > 0:
                size = writer.size(size_name, [shape[d] for d in group])
                index = f"{index} % {size}"
            terms.insert(0, index if not own_stride else f"{index} * {_times(own_stride)}")
            own_stride.append(writer.size(size_name, [shape[d] for d in group]) if position > 0 else size_name)
        if position > 0:
            after.append(writer.size(size_name, [shape[d] for d in group]))
    return " + ".join(terms)


def _times(factors: Sequence[str]) -> str:
    return factors[0] if len(factors) == 1 else f"({' * '.join(reversed(factors))})"


def contiguous(emission: Emission, name: str) -> str:
    """Give the argument for a tensor that the kernel reads as contiguous."""
    source = getattr(emission.lowered.values[name], "source", None)
    text = emission.names.outside(name)
    return f"{text}.contiguous()" if source is not None and source.kind == "argument" else text


def allocation(emission: Emission, output: str) -> str:
    """Write the allocation of an output, shaped and typed after an input where one fits."""
    value = emission.lowered.values[output]
    # Arguments first: the result's dtype follows what is passed, not what is stored.
    entries = sorted(emission.task.graph.inputs, key=lambda entry: entry.kind is not InputKind.ARGUMENT)
    inputs = [(entry.name, emission.lowered.values[entry.name]) for entry in entries]
    alike = next((n for n, v in inputs if v.dtype == value.dtype), None)
    same = next((n for n, v in inputs if v.shape == value.shape), None)
    any_input = emission.names.outside(alike or inputs[0][0])
    sizes = [emission.size(d) for d in value.shape]
    shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
    if same is not None:
        shape = f"{emission.names.outside(same)}.shape"
    dtype = f"{emission.names.outside(alike)}.dtype" if alike else f"torch.{value.dtype}"
    return f"{emission.names[output]} = torch.empty({shape}, dtype={dtype}, device={any_input}.device)"


def names_of(emission: Emission, values: Sequence[str]) -> str:
    """Give the names of values for a sentence."""
    texts = [f"``{emission.names[v]}``" for v in values]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
