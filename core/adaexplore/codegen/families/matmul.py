"""Products ``x @ w.T`` (``nn.Linear``) and ``x @ w`` with a fused pointwise epilogue.

Two structures. ``pointers``: tiles are loaded through pointers; runs everywhere. ``descriptors``: tiles are loaded by
the tensor memory accelerator (Hopper and newer, Triton 3.4 and newer); needs rows that start at multiples of 16 bytes.
"""

from __future__ import annotations

from adaexplore.codegen.families.pointwise import allocation, names_of
from adaexplore.codegen.kernel import HALF_TYPES, Emission, KernelText, KernelWriter, line_range, upcast
from adaexplore.codegen.partition import Form, Group, GroupKind
from adaexplore.codegen.routes import routes
from adaexplore.codegen.schedule import Choice, Schedule, next_power_of_two
from adaexplore.codegen.values import Input, Matmul, Pointwise, Primitive

DESCRIPTOR_ALIGNMENT_BYTES = 16
"""The tensor memory accelerator's alignment of bases and strides (CUDA driver API, cuTensorMapEncodeTiled)."""
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


class MatmulFamily:
    """One program computes a tile of the product and finishes it with the epilogue."""

    kind = GroupKind.MATMUL

    def structures(self, emission: Emission, group: Group) -> tuple[str, ...]:
        """Give the kernel structures for this group: the ways to load, times the numeric routes."""
        product = _product(emission, group)
        ways = ["descriptors", "pointers"] if _can_describe(emission, product) else ["pointers"]
        found = routes(product.dtype, allow_tf32=emission.allow_tf32)
        return tuple(f"{way} {route}".strip() for route in found for way in ways)

    def space(self, emission: Emission, group: Group, structure: str) -> tuple[Choice, ...]:
        """Give the schedule space, with defaults for the workload's sizes."""
        half = _product(emission, group).dtype in HALF_TYPES
        rows = next_power_of_two(emission.hint(group.space.outer))
        wide = min(128, max(16, rows))
        block_k = 64 if half or "x3" in structure else 32
        return (
            Choice("block_m", (16, 32, 64, 128, 256), wide),
            Choice("block_n", (32, 64, 128, 256), 256 if half and rows >= 1024 else 128),
            Choice("block_k", (16, 32, 64, 128), block_k),
            Choice("group_m", (1, 4, 8, 16), 8),
            Choice("num_warps", (4, 8), 8),
            Choice("num_stages", (2, 3, 4, 5), 3),
        )

    def describe(self, structure: str, schedule: Schedule) -> str:
        """Say the choice in a few words."""
        tile = "x".join(str(schedule[f"block_{d}"]) for d in "mnk")
        return f"{structure}, tiles {tile}, {schedule['num_warps']} warps, {schedule['num_stages']} stages"

    def emit(self, emission: Emission, group: Group, structure: str, schedule: Schedule, suffix: str) -> KernelText:
        """Write the kernel."""
        way, _, route = structure.partition(" ")
        product = _product(emission, group)
        writer = KernelWriter(emission, group, suffix)
        described = way == "descriptors"
        setup = _declare(writer, group, product, described)
        _write_tile_position(writer)
        _write_product(writer, product, route, described)
        _write_epilogue(writer, group, product)
        names = {"block_m": "BLOCK_M", "block_n": "BLOCK_N", "block_k": "BLOCK_K", "group_m": "GROUP_M"}
        for key, name in names.items():
            writer.constant(name, str(schedule[key]))
        setup += [allocation(emission, output) for output in group.outputs]
        if described:
            setup += _descriptors(emission, product, schedule)
        grid = f"(triton.cdiv(n_rows, {schedule['block_m']}) * triton.cdiv(n_outs, {schedule['block_n']}),)"
        docstring = [
            f"One tile of {names_of(emission, group.outputs)}; replaces {line_range(emission, group.members)}."
        ]
        options = [f"num_warps={schedule['num_warps']}", f"num_stages={schedule['num_stages']}"]
        text = writer.finish(docstring, grid, options)
        return KernelText(text.kernel, (*setup, *text.launch))


def _product(emission: Emission, group: Group) -> Matmul:
    value = emission.lowered.values[group.members[0]]
    assert isinstance(value, Matmul)
    return value


def _can_describe(emission: Emission, product: Matmul) -> bool:
    """Rows must be of a fixed, aligned length; ``w`` must be stored as nn.Linear does."""
    left, right = emission.lowered.values[product.left], emission.lowered.values[product.right]
    n_ins = left.shape[-1]
    both_contiguous = all(not isinstance(v, Input) or v.source.contiguous for v in (left, right))
    aligned = isinstance(n_ins, int) and n_ins * _BYTES[product.dtype] % DESCRIPTOR_ALIGNMENT_BYTES == 0
    return product.right_is_transposed and both_contiguous and aligned


def _matrix(emission: Emission, value: Primitive) -> str:
    """Give the left operand as a matrix: its outer dimensions become one."""
    name = emission.names[value.name]
    if isinstance(value, Input) and not value.source.contiguous:
        name += ".contiguous()"
    return name if len(value.shape) == 2 else f"{name}.view(-1, n_ins)"


def _declare(writer: KernelWriter, group: Group, product: Matmul, described: bool) -> list[str]:
    emission = writer.emission
    left, right = emission.lowered.values[product.left], emission.lowered.values[product.right]
    left_name, right_name = emission.names[left.name], emission.names[right.name]
    setup = [
        f"n_rows = {emission.product(group.space.outer)}",
        f"n_ins, n_outs = {emission.size(left.shape[-1])}, {emission.size(group.space.inner[0])}",
    ]
    matrix = _matrix(emission, left)
    if matrix != left_name:
        setup.append(f"{left_name}_rows = {matrix}")
        matrix = f"{left_name}_rows"
    if described:
        writer.argument(f"{left_name}_tiles", f"{left_name}_tiles")
        writer.argument(f"{right_name}_tiles", f"{right_name}_tiles")
    else:
        writer.pointer(left.name, matrix)
        writer.pointer(right.name)
    writer.argument("n_rows", "n_rows")
    for name, dim in (("n_ins", left.shape[-1]), ("n_outs", group.space.inner[0])):
        declare = writer.constant if isinstance(dim, int) else writer.argument
        declare(name, name)
    if not described:
        writer.argument(f"{left_name}_row_stride", f"{matrix}.stride(0)")
        if not product.right_is_transposed:
            writer.argument(f"{right_name}_row_stride", f"{right_name}.stride(0)")
            writer.argument(f"{right_name}_col_stride", f"{right_name}.stride(1)")
    return setup


def _descriptors(emission: Emission, product: Matmul, schedule: Schedule) -> list[str]:
    left, right = emission.lowered.values[product.left], emission.lowered.values[product.right]
    left_name, right_name = emission.names[left.name], emission.names[right.name]
    matrix = f"{left_name}_rows" if _matrix(emission, left) != left_name else left_name
    block_k = schedule["block_k"]
    return [
        "from triton.tools.tensor_descriptor import TensorDescriptor",
        f"{left_name}_tiles = TensorDescriptor.from_tensor({matrix}, [{schedule['block_m']}, {block_k}])",
        f"{right_name}_tiles = TensorDescriptor.from_tensor({right_name}, [{schedule['block_n']}, {block_k}])",
    ]


def _write_tile_position(writer: KernelWriter) -> None:
    writer.line(
        "# Programs that run at the same time share rows and weights in L2: walk GROUP_M tiles down, then right."
    )
    writer.line("pid = tl.program_id(0)")
    writer.line("n_tiles_m = tl.cdiv(n_rows, BLOCK_M)")
    writer.line("tiles_in_group = GROUP_M * tl.cdiv(n_outs, BLOCK_N)")
    writer.line("first_m = pid // tiles_in_group * GROUP_M")
    writer.line("group_size = tl.minimum(n_tiles_m - first_m, GROUP_M)")
    writer.line("start_m = (first_m + pid % tiles_in_group % group_size) * BLOCK_M")
    writer.line("start_n = pid % tiles_in_group // group_size * BLOCK_N")
    writer.line("rows = start_m + tl.arange(0, BLOCK_M)")
    writer.line("outs = start_n + tl.arange(0, BLOCK_N)")


def _write_product(writer: KernelWriter, product: Matmul, route: str, described: bool) -> None:
    emission = writer.emission
    precision = f', input_precision="{route}"' if route else ""
    acc = emission.names[product.name]
    left, right = emission.names[product.left], emission.names[product.right]
    writer.comment_source(product.line)
    if described:
        writer.line(f"{acc} = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)")
        writer.line("for k in range(0, n_ins, BLOCK_K):")
        writer.line(f"    {left}_tile = {left}_tiles.load([start_m, k])")
        writer.line(f"    {right}_tile = {right}_tiles.load([start_n, k])")
        writer.line(f"    {acc} = tl.dot({left}_tile, {right}_tile.T, {acc}{precision})")
        return
    writer.line("ks = tl.arange(0, BLOCK_K)")
    writer.line(f"{left}_ptrs = {left}_ptr + rows.to(tl.int64)[:, None] * {left}_row_stride + ks[None, :]")
    if product.right_is_transposed:
        writer.line(f"{right}_ptrs = {right}_ptr + outs.to(tl.int64)[None, :] * n_ins + ks[:, None]")
        step = "BLOCK_K"
    else:
        stride = f"{right}_row_stride"
        writer.line(
            f"{right}_ptrs = {right}_ptr + ks[:, None] * {stride} + outs.to(tl.int64)[None, :] * {right}_col_stride"
        )
        step = f"BLOCK_K * {stride}"
    writer.line(f"{acc} = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)")
    writer.line("for k in range(0, n_ins, BLOCK_K):")
    writer.line("    in_row = k + ks < n_ins")
    writer.line(f"    {left}_tile = tl.load({left}_ptrs, mask=(rows < n_rows)[:, None] & in_row[None, :], other=0.0)")
    writer.line(f"    {right}_tile = tl.load({right}_ptrs, mask=in_row[:, None] & (outs < n_outs)[None, :], other=0.0)")
    writer.line(f"    {acc} = tl.dot({left}_tile, {right}_tile, {acc}{precision})")
    writer.line(f"    {left}_ptrs += BLOCK_K")
    writer.line(f"    {right}_ptrs += {step}")


def _load_tile(writer: KernelWriter, group: Group, name: str) -> None:
    """Write the load of what the epilogue reads beside the product."""
    emission = writer.emission
    value = emission.lowered.values[name]
    form = group.forms[name]
    pointer = writer.pointer(name)
    other = "0" if "int" in value.dtype or value.dtype == "bool" else "0.0"
    if form is Form.SCALAR:
        text = f"tl.load({pointer})"
    elif form is Form.COLUMN:
        text = f"tl.load({pointer} + outs, mask=outs < n_outs, other={other})[None, :]"
    elif form in (Form.ROW, Form.FLAT_ROW):
        text = f"tl.load({pointer} + rows, mask=rows < n_rows, other={other})[:, None]"
    else:
        text = f"tl.load({pointer} + offsets, mask=mask, other={other})"
    writer.line(f"{emission.names[name]} = {text}{upcast(value.dtype)}")


def _write_epilogue(writer: KernelWriter, group: Group, product: Matmul) -> None:
    emission = writer.emission
    writer.line("mask = (rows < n_rows)[:, None] & (outs < n_outs)[None, :]")
    writer.line("offsets = rows.to(tl.int64)[:, None] * n_outs + outs[None, :]")
    for name in group.inputs:
        if name in group.forms and name not in (product.left, product.right):
            _load_tile(writer, group, name)
    for member in group.members[1:]:
        value = emission.lowered.values[member]
        assert isinstance(value, Pointwise)
        writer.assign(value, writer.expression(value, "n_outs"))
    for output in group.outputs:
        writer.line(f"tl.store({writer.pointer(output)} + offsets, {writer.reference(output)}, mask=mask)")
