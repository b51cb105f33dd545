"""Products ``x @ w.T`` (``nn.Linear``) and ``x @ w`` with a fused pointwise epilogue.

Two structures. ``pointers``: tiles are loaded through pointers; runs everywhere. ``descriptors``: tiles are loaded by
the tensor memory accelerator (Hopper and newer, Triton 3.4 and newer); needs rows that start at multiples of 16 bytes.

Two parameters beside the tile's. ``persistent``: as many programs as processors, each walks over its tiles, so that
the next tile's loads overlap this one's epilogue. ``whole_waves``: only as many columns as fill whole waves of programs
get the large tiles, and a second launch computes the rest in small ones; else most processors idle in the last wave.
On an H200 (2048x4096 by 11008, bf16, triton 3.6, 2026-12-01) both together took 0.272 ms instead of 0.302.
"""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.codegen.families.indexing import may_have_padded_rows, outer_index
from adaexplore.codegen.families.pointwise import allocation, names_of
from adaexplore.codegen.kernel import HALF_TYPES, Emission, KernelText, KernelWriter, line_range, upcast
from adaexplore.codegen.naming import access
from adaexplore.codegen.partition import Form, Group, GroupKind
from adaexplore.codegen.routes import routes
from adaexplore.codegen.schedule import Choice, Schedule, next_power_of_two
from adaexplore.codegen.values import Input, Matmul, Pointwise, Primitive
from adaexplore.model.task import InputKind

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
        large = emission.hint(group.space.full) >= 128 * 128 * emission.n_processors
        persistent = "descriptors" in structure and large
        return (
            Choice("block_m", (16, 32, 64, 128, 256), wide),
            Choice("block_n", (32, 64, 128, 256), 256 if half and rows >= 1024 else 128),
            Choice("block_k", (16, 32, 64, 128), block_k),
            Choice("group_m", (1, 4, 8, 16), 8),
            Choice("num_warps", (4, 8), 8),
            Choice("num_stages", (2, 3, 4, 5), 3),
            Choice("persistent", (0, 1), int(persistent)),
            Choice("whole_waves", (0, 1), int(large)),
        )

    def describe(self, structure: str, schedule: Schedule) -> str:
        """Say the choice in a few words."""
        tile = "x".join(str(schedule[f"block_{d}"]) for d in "mnk")
        extras = [name.replace("_", " ") for name in ("persistent", "whole_waves") if schedule[name]]
        warps = f"{schedule['num_warps']} warps, {schedule['num_stages']} stages"
        return ", ".join([structure, f"tiles {tile}", warps, *extras])

    def emit(self, emission: Emission, group: Group, structure: str, schedule: Schedule, suffix: str) -> KernelText:
        """Write the kernel."""
        way, _, route = structure.partition(" ")
        plan = _Plan(
            writer=KernelWriter(emission, group, suffix),
            group=group,
            product=_product(emission, group),
            route=route,
            described=way == "descriptors",
            persistent=bool(schedule["persistent"]),
            whole_waves=bool(schedule["whole_waves"]),
        )
        setup = _declare(plan)
        _write_body(plan)
        for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M"):
            plan.writer.constant(name, str(schedule[name.lower()]))
        setup += [allocation(emission, output) for output in group.outputs]
        outputs = names_of(emission, group.outputs)
        docstring = [f"One tile of {outputs} at a time; replaces {line_range(emission, group.members)}."]
        launches = _whole_waves(plan, schedule) if plan.whole_waves else _launch(plan, schedule)
        return KernelText(plan.writer.kernel(docstring), (*setup, *launches))


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one kernel is to be."""

    writer: KernelWriter
    group: Group
    product: Matmul
    route: str
    described: bool
    persistent: bool
    whole_waves: bool

    @property
    def emission(self) -> Emission:
        return self.writer.emission

    @property
    def left(self) -> Primitive:
        return self.emission.lowered.values[self.product.left]

    @property
    def right(self) -> Primitive:
        return self.emission.lowered.values[self.product.right]

    @property
    def matrix(self) -> str:
        """The left operand as a matrix: its outer dimensions become one."""
        name = self.emission.names.outside(self.left.name)
        return name if _matrix(self.emission, self.left) == name else f"{name}_rows"


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
    name = emission.names.outside(value.name)
    if isinstance(value, Input) and not value.source.contiguous:
        name += ".contiguous()"
    return name if len(value.shape) == 2 else f"{name}.view(-1, n_ins)"


def _declare(plan: _Plan) -> list[str]:
    """Declare the kernel's parameters; gives what the launching function computes before."""
    writer, emission, left, right = plan.writer, plan.emission, plan.left, plan.right
    left_name, right_name = emission.names.outside(left.name), emission.names.outside(right.name)
    inner = plan.group.space.inner[0]
    setup = [
        f"n_rows = {emission.product(plan.group.space.outer)}",
        f"n_ins, n_outs = {emission.size(left.shape[-1])}, {emission.size(inner)}",
    ]
    if plan.matrix != left_name:
        setup.append(f"{plan.matrix} = {_matrix(emission, left)}")
    if plan.described:
        emission.call_conditions += _alignments(plan)
        writer.argument(f"{left_name}_tiles", f"{left_name}_tiles")
        writer.argument(f"{right_name}_tiles", f"{right_name}_tiles")
    else:
        writer.pointer(left.name, plan.matrix)
        writer.pointer(right.name, _right_argument(plan))
        writer.argument(f"{left_name}_row_stride", f"{plan.matrix}.stride(0)")
        if not plan.product.right_is_transposed:
            writer.argument(f"{right_name}_row_stride", f"{right_name}.stride(0)")
            writer.argument(f"{right_name}_col_stride", f"{right_name}.stride(1)")
    writer.argument("n_rows", "n_rows")
    if plan.whole_waves:
        writer.argument("first_out", "0")
        writer.argument("last_out", "n_outs")
    for name, dim in (("n_ins", left.shape[-1]), ("n_outs", inner)):
        declare = writer.constant if isinstance(dim, int) else writer.argument
        declare(name, name)
    if plan.persistent:
        writer.constant("N_PROGRAMS", str(emission.n_processors))
    return setup


def _right_argument(plan: _Plan) -> str:
    """Give the right operand to pass: the kernel asks for its strides only where it is stored (K, N)."""
    name = plan.emission.names.outside(plan.right.name)
    strided = isinstance(plan.right, Input) and not plan.right.source.contiguous
    padded = strided or may_have_padded_rows(plan.right)
    return f"{name}.contiguous()" if padded and plan.product.right_is_transposed else name


def _alignments(plan: _Plan) -> list[str]:
    """Give what the memory accelerator demands of tensors from outside: bases and rows at multiples of 16 bytes."""
    conditions = []
    for value in (plan.left, plan.right):
        if not isinstance(value, Input):
            continue  # allocated here: aligned, and contiguous
        is_argument = value.source.kind is InputKind.ARGUMENT
        text = value.source.source if is_argument else access(value.source.source)
        conditions.append(f"{text}.data_ptr() % {DESCRIPTOR_ALIGNMENT_BYTES} == 0")
        if is_argument and len(value.shape) == 2:
            conditions.append(f"{text}.stride(0) * {_BYTES[value.dtype]} % {DESCRIPTOR_ALIGNMENT_BYTES} == 0")
    return conditions


def _descriptors(plan: _Plan, schedule: Schedule) -> list[str]:
    names = [plan.emission.names.outside(v.name) for v in (plan.left, plan.right)]
    blocks = [f"[{schedule[b]}, {schedule['block_k']}]" for b in ("block_m", "block_n")]
    return [
        "from triton.tools.tensor_descriptor import TensorDescriptor",
        f"{names[0]}_tiles = TensorDescriptor.from_tensor({plan.matrix}, {blocks[0]})",
        f"{names[1]}_tiles = TensorDescriptor.from_tensor({names[1]}, {blocks[1]})",
    ]


def _launch(plan: _Plan, schedule: Schedule, first: str = "", last: str = "") -> list[str]:
    """Write a launch of all tiles, or of those between two columns."""
    n_outs = f"{last} - {first}" if first not in ("", "0") else last or "n_outs"
    tiles = f"triton.cdiv(n_rows, {schedule['block_m']}) * triton.cdiv({n_outs}, {schedule['block_n']})"
    grid = f"(min({plan.emission.n_processors}, {tiles}),)" if plan.persistent else f"({tiles},)"
    options = [f"num_warps={schedule['num_warps']}", f"num_stages={schedule['num_stages']}"]
    instead = {name.upper(): str(schedule[name]) for name in ("block_m", "block_n", "block_k", "group_m")}
    if first:
        instead |= {"first_out": first, "last_out": last}
    return [
        *(_descriptors(plan, schedule) if plan.described else []),
        *plan.writer.launch(grid, options, instead),
    ]


def _whole_waves(plan: _Plan, schedule: Schedule) -> list[str]:
    """Write two launches: large tiles for what fills whole waves, small ones for the rest."""
    small = _small_tiles(plan, schedule)
    block_m, block_n, n_processors = schedule["block_m"], schedule["block_n"], plan.emission.n_processors
    return [
        f"# Columns that fill whole waves of {n_processors} programs; the rest is computed in smaller tiles.",
        f"tiles_down = triton.cdiv(n_rows, {block_m})",
        f"n_waves = tiles_down * triton.cdiv(n_outs, {block_n}) // {n_processors}",
        f"split = min(n_outs, n_waves * {n_processors} // tiles_down * {block_n})",
        "if split > 0:",
        *(f"    {line}" for line in _launch(plan, schedule, "0", "split")),
        "if split < n_outs:",
        *(f"    {line}" for line in _launch(plan, small, "split", "n_outs")),
    ]


def _small_tiles(plan: _Plan, schedule: Schedule) -> dict[str, int]:
    half = plan.product.dtype in HALF_TYPES
    return dict(schedule) | {
        "block_m": max(16, schedule["block_m"] // 2),
        "block_n": max(32, schedule["block_n"] // 2),
        "block_k": 128 if half else schedule["block_k"],
        "num_warps": 4,
        "num_stages": 4 if half else 3,
    }


def _write_body(plan: _Plan) -> None:
    writer = plan.writer
    first, last = ("first_out", "last_out") if plan.whole_waves else ("0", "n_outs")
    writer.line("n_tiles_m = tl.cdiv(n_rows, BLOCK_M)")
    n_outs = f"{last} - {first}" if plan.whole_waves else last
    writer.line(f"n_tiles_n = tl.cdiv({n_outs}, BLOCK_N)")
    if plan.persistent:
        loop = "tl.range(tl.program_id(0), n_tiles_m * n_tiles_n, N_PROGRAMS, flatten=True)"
        writer.line(f"for tile in {loop}:")
        writer.indent += 1
    else:
        writer.line("tile = tl.program_id(0)")
    writer.line("# Tiles at work at the same time share rows and weights in L2: walk GROUP_M tiles down, then right.")
    writer.line("first_m = tile // (GROUP_M * n_tiles_n) * GROUP_M")
    writer.line("group_size = tl.minimum(n_tiles_m - first_m, GROUP_M)")
    writer.line("start_m = (first_m + tile % (GROUP_M * n_tiles_n) % group_size) * BLOCK_M")
    start = "tile % (GROUP_M * n_tiles_n) // group_size * BLOCK_N"
    writer.line(f"start_n = {f'first_out + {start}' if plan.whole_waves else start}")
    writer.line("rows = start_m + tl.arange(0, BLOCK_M)")
    writer.line("outs = start_n + tl.arange(0, BLOCK_N)")
    _write_product(writer, plan.product, plan.route, plan.described)
    _write_epilogue(writer, plan.group, plan.product, last)


def _write_product(writer: KernelWriter, product: Matmul, route: str, described: bool) -> None:
    emission = writer.emission
    precision = f', input_precision="{route}"' if route else ""
    acc = emission.names[product.name] if product.name in writer.group.outputs else "acc"
    writer.stand_for(product.name, acc)
    left, right = emission.names.outside(product.left), emission.names.outside(product.right)
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
    outside = emission.names.outside(name)
    strided = isinstance(value, Input) and not value.source.contiguous
    pointer = writer.pointer(name, f"{outside}.contiguous()" if strided or may_have_padded_rows(value) else outside)
    other = "0" if "int" in value.dtype or value.dtype == "bool" else "0.0"
    if form is Form.SCALAR:
        text = f"tl.load({pointer})"
    elif form is Form.COLUMN:
        text = f"tl.load({pointer} + outs, mask=outs < n_outs, other={other})[None, :]"
    elif form in (Form.ROW, Form.FLAT_ROW):
        text = f"tl.load({pointer} + rows, mask=rows < n_rows, other={other})[:, None]"
    elif form is Form.PARTIAL_ROW:
        index = outer_index(writer, value, group.space, "rows")
        text = f"tl.load({pointer} + {index}, mask=rows < n_rows, other={other})[:, None]"
    elif form is Form.PARTIAL:
        index = outer_index(writer, value, group.space, "rows.to(tl.int64)")
        text = f"tl.load({pointer} + ({index})[:, None] * n_outs + outs[None, :], mask=mask, other={other})"
    else:
        text = f"tl.load({pointer} + offsets, mask=mask, other={other})"
    writer.line(f"{emission.names[name]} = {text}{upcast(value.dtype)}")


def _write_epilogue(writer: KernelWriter, group: Group, product: Matmul, last: str) -> None:
    emission = writer.emission
    writer.line(f"mask = (rows < n_rows)[:, None] & (outs < {last})[None, :]")
    writer.line("offsets = rows.to(tl.int64)[:, None] * n_outs + outs[None, :]")
    for name in group.inputs:
        if name in group.forms and name not in (product.left, product.right):
            _load_tile(writer, group, name)
    for member in group.members[1:]:
        value = emission.lowered.values[member]
        assert isinstance(value, Pointwise)
        writer.assign(value, writer.expression(value))
    for output in group.outputs:
        writer.line(f"tl.store({writer.pointer(output)} + offsets, {writer.reference(output)}, mask=mask)")
