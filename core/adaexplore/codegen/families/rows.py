"""Row reductions and norms with the pointwise operators around them: softmax, LayerNorm, RMSNorm, log-sum-exp.

Two structures. ``block``: a program holds whole rows in registers; each input is read once. ``loop``: a program walks a
row in blocks, once for each level of reductions; for rows too long for registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.codegen.families.indexing import may_have_padded_rows, outer_index
from adaexplore.codegen.families.pointwise import allocation, names_of
from adaexplore.codegen.kernel import Emission, KernelText, KernelWriter, line_range, upcast, zero_where_padded
from adaexplore.codegen.partition import Form, Group, GroupKind
from adaexplore.codegen.schedule import Choice, Schedule, next_power_of_two, powers_of_two
from adaexplore.codegen.values import Input, Pointwise, Primitive, Reduce, View, operands_of

LARGEST_BLOCK = 32768
"""Elements of a row held in registers by one program: 64 a thread at 16 warps."""
_WIDE = (Form.FULL, Form.COLUMN, Form.PARTIAL)


class RowsFamily:
    """One program computes one row, or several short ones."""

    kind = GroupKind.ROWS

    def structures(self, emission: Emission, group: Group) -> tuple[str, ...]:
        """Give the kernel structures for this group, the most promising first."""
        n_cols = emission.hint(group.space.inner)
        if n_cols > LARGEST_BLOCK:
            return ("loop",)
        return ("block", "loop") if n_cols >= 2048 else ("block",)

    def space(self, emission: Emission, group: Group, structure: str) -> tuple[Choice, ...]:
        """Give the schedule space."""
        block = next_power_of_two(emission.hint(group.space.inner))
        if structure == "loop":
            widest = max(512, min(block, 8192))
            return (
                Choice("block", powers_of_two(256, widest), min(2048, widest)),
                Choice("num_warps", (1, 2, 4, 8, 16), 8),
            )
        most_rows = max(1, min(64, LARGEST_BLOCK // block))
        n_rows = next_power_of_two(emission.hint(group.space.outer))
        rows = max(1, min(most_rows, 1024 // block, n_rows))
        warps = min(16, max(1, next_power_of_two(block * rows) // 512))
        return (
            Choice("rows_per_program", powers_of_two(1, most_rows), rows),
            Choice("num_warps", (1, 2, 4, 8, 16), warps),
            Choice("keep_inputs", (0, 1), 1),
        )

    def describe(self, structure: str, schedule: Schedule) -> str:
        """Say the choice in a few words."""
        if structure == "loop":
            return f"rows in blocks of {schedule['block']}, {schedule['num_warps']} warps"
        rows = schedule["rows_per_program"]
        kept = ", inputs kept in L2" if schedule["keep_inputs"] else ""
        return f"{'one row' if rows == 1 else f'{rows} rows'} a program, {schedule['num_warps']} warps{kept}"

    def emit(self, emission: Emission, group: Group, structure: str, schedule: Schedule, suffix: str) -> KernelText:
        """Write the kernel."""
        writer = KernelWriter(emission, group, suffix)
        eviction = "evict_last" if schedule.get("keep_inputs") else ""
        tile = _Tile(writer, group, schedule.get("rows_per_program", 1), eviction)
        if structure == "loop":
            _emit_loop(tile, schedule["block"])
        else:
            _emit_block(tile)
        setup = [allocation(emission, output) for output in group.outputs]
        n_rows = emission.product(group.space.outer)
        rows = tile.rows_per_program
        grid = "(n_rows,)" if rows == 1 else f"(triton.cdiv(n_rows, {rows}),)"
        setup.append(f"n_rows = {n_rows}")
        what = "One row" if rows == 1 else f"{rows} rows"
        docstring = [f"{what} of {names_of(emission, group.outputs)}; replaces {line_range(emission, group.members)}."]
        launch = writer.launch(grid, [f"num_warps={schedule['num_warps']}"])
        return KernelText(writer.kernel(docstring), (*setup, *launch))


@dataclass(slots=True)
class _Tile:
    """The part of the space that one program holds, and how to index it."""

    writer: KernelWriter
    group: Group
    rows_per_program: int
    eviction: str = ""
    """What L2 is told of full loads. ``loop``: rows that are read again stay, those read for the last time go.
    ``block``: inputs that stay push out what was written before, which must go to memory anyhow (1 % on an H200)."""

    @property
    def emission(self) -> Emission:
        return self.writer.emission

    @property
    def row(self) -> str:
        return "row" if self.rows_per_program == 1 else "rows[:, None]"

    @property
    def cols(self) -> str:
        return "cols" if self.rows_per_program == 1 else "cols[None, :]"

    def value(self, name: str) -> Primitive:
        return self.emission.lowered.values[name]

    def declare_rows(self) -> None:
        """Write which rows this program holds. 64 bits: rows times a stride may pass 2**31."""
        self.writer.size("n_cols", self.group.space.inner)
        if self.rows_per_program == 1:
            self.writer.line("row = tl.program_id(0).to(tl.int64)")
            return
        self.writer.argument("n_rows", "n_rows")
        self.writer.constant("ROWS", str(self.rows_per_program))
        self.writer.line("rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)")

    def declare_cols(self, start: str, names: Sequence[str]) -> None:
        """Write which columns are at hand, the mask, and the offsets that the tensors ``names`` share."""
        self.writer.line(f"cols = {start}tl.arange(0, BLOCK)")
        if self.rows_per_program == 1:
            self.writer.line("mask = cols < n_cols")
        else:
            self.writer.line("mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]")
        if any(self.group.forms[n] is Form.FULL and not self._is_strided(self.value(n)) for n in names):
            self.writer.line(f"offsets = {self.row} * n_cols + {self.cols}")

    def load(self, name: str) -> None:
        """Write the load of an input."""
        value = self.value(name)
        pointer = self.writer.pointer(name, self._argument(value))
        text = self._load_text(value, pointer, self.group.forms[name])
        self.writer.line(f"{self.emission.names[name]} = {text}{upcast(value.dtype)}")

    def _load_text(self, value: Primitive, pointer: str, form: Form) -> str:
        other = "0" if "int" in value.dtype or value.dtype == "bool" else "0.0"
        if form is Form.SCALAR:
            return f"tl.load({pointer})"
        if form is Form.FULL:
            policy = f', eviction_policy="{self.eviction}"' if self.eviction else ""
            return f"tl.load({pointer} + {self._full_offsets(value)}, mask=mask, other={other}{policy})"
        if form is Form.COLUMN:
            shape = "" if self.rows_per_program == 1 else "[None, :]"
            return f"tl.load({pointer} + cols, mask=cols < n_cols, other={other}){shape}"
        if form is Form.PARTIAL:
            return f"tl.load({pointer} + {self._outer_index(value)} * n_cols + {self.cols}, mask=mask, other={other})"
        index = self._outer_index(value) if form is Form.PARTIAL_ROW else self.row
        if self.rows_per_program == 1:
            return f"tl.load({pointer} + {index})"
        return f"tl.load({pointer} + {index}, mask=(rows < n_rows)[:, None], other={other})"

    def _is_strided(self, value: Primitive) -> bool:
        """Matrices from outside may have padded rows; anything else is contiguous."""
        full = self.group.forms[value.name] is Form.FULL and len(self.group.space.inner) == 1
        return full and may_have_padded_rows(value)

    def _full_offsets(self, value: Primitive) -> str:
        if not self._is_strided(value):
            return "offsets"
        name = self.emission.names.outside(value.name)
        stride = self.writer.argument(f"{name}_row_stride", f"{self._argument(value)}.stride(0)")
        return f"{self.row} * {stride} + {self.cols}"

    def _argument(self, value: Primitive) -> str:
        """Give the tensor to pass: made contiguous where the kernel does not ask for its stride."""
        name = self.emission.names.outside(value.name)
        strided = isinstance(value, Input) and not value.source.contiguous
        padded = may_have_padded_rows(value) and not self._is_strided(value)
        return f"{name}.contiguous()" if strided or padded else name

    def _outer_index(self, value: Primitive) -> str:
        return outer_index(self.writer, value, self.group.space, self.row)

    def assign(self, value: Primitive, *, may_inline: bool = True) -> None:
        """Write a pointwise value, or let a view stand for what it views."""
        if isinstance(value, View):
            text = self.writer.reference(value.operand)
        else:
            assert isinstance(value, Pointwise)
            text = self.writer.expression(value)
        self.writer.assign(value, text, may_inline=may_inline)

    def masked(self, value: Reduce) -> str:
        """Give the reduced values with the neutral element beyond the row."""
        text = self.writer.reference(value.operand)
        if value.kind in ("sum", "mean"):
            if zero_where_padded(self.emission, self.group, value.operand):
                return text
            return f"tl.where(mask, {text}, 0.0)"
        neutral = '-float("inf")' if value.kind == "max" else 'float("inf")'
        return f"tl.where(mask, {text}, {neutral})"

    def reduced(self, value: Reduce, text: str) -> str:
        """Give the reduction of a block ``text`` along the row."""
        axis, shape = ("0", "") if self.rows_per_program == 1 else ("1", "[:, None]")
        if value.kind in ("sum", "mean"):
            total = f"tl.sum({text}, axis={axis}){shape}"
            return f"{total} / n_cols" if value.kind == "mean" else total
        combine = self.writer.helpers_in(f"@{value.kind}")
        return f"tl.reduce({text}, {axis}, {combine}){shape}"

    def store(self, name: str) -> None:
        """Write the store of an output."""
        pointer, text = self.writer.pointer(name), self.writer.reference(name)
        if self.group.forms[name] is Form.FULL:
            self.writer.line(f"tl.store({pointer} + offsets, {text}, mask=mask)")
        elif self.rows_per_program == 1:
            self.writer.line(f"tl.store({pointer} + row, {text})")
        else:
            self.writer.line(f"tl.store({pointer} + rows[:, None], {text}, mask=(rows < n_rows)[:, None])")


def _emit_block(tile: _Tile) -> None:
    writer, group = tile.writer, tile.group
    tile.declare_rows()
    inner = group.space.inner
    fixed = all(isinstance(d, int) for d in inner)
    if not fixed:
        tile.emission.conditions.append(f"{' * '.join(map(str, inner))} <= {LARGEST_BLOCK}")
    size = str(next_power_of_two(tile.emission.hint(inner))) if fixed else (
        f"triton.next_power_of_2({tile.emission.product(inner)})"
    )  # fmt: skip
    tile.declare_cols("", (*group.inputs, *group.outputs))
    for name in group.inputs:
        tile.load(name)
    for member in group.members:
        value = tile.value(member)
        if isinstance(value, Reduce):
            writer.assign(value, tile.reduced(value, tile.masked(value)))
        else:
            tile.assign(value)
    for output in group.outputs:
        tile.store(output)
    writer.constant("BLOCK", size)


def _levels(tile: _Tile) -> dict[str, int]:
    """Give for each value how many reductions lie before it, one after the other."""
    levels: dict[str, int] = {}
    for member in tile.group.members:
        value = tile.value(member)
        level = max((levels.get(o, 0) for o in operands_of(value)), default=0)
        levels[member] = level + 1 if isinstance(value, Reduce) else level
    return levels


def _needed(tile: _Tile, targets: list[str]) -> list[str]:
    """Give the wide values (those with columns) that ``targets`` are computed from, in order."""
    wanted: set[str] = set()
    pending = list(targets)
    while pending:
        name = pending.pop()
        if name in wanted or tile.group.forms.get(name) not in _WIDE:
            continue
        wanted.add(name)
        value = tile.value(name)
        if name in tile.group.members and not isinstance(value, Reduce):
            pending.extend(operands_of(value))
    ordered = [*tile.group.inputs, *tile.group.members]
    return [name for name in ordered if name in wanted]


def _emit_loop(tile: _Tile, block: int) -> None:
    writer, group = tile.writer, tile.group
    levels = _levels(tile)
    tile.declare_rows()
    tile.eviction = "evict_last"
    for name in group.inputs:
        if group.forms[name] not in _WIDE:
            tile.load(name)
    narrow = [m for m in group.members if group.forms[m] not in _WIDE]
    for level in range(max(levels.values()) + 1):
        for member in narrow:
            value = tile.value(member)
            if levels[member] == level and not isinstance(value, Reduce):
                tile.assign(value, may_inline=_is_read_at(tile, member, levels))
        reductions = [v for m in group.members if isinstance(v := tile.value(m), Reduce) and levels[m] == level + 1]
        if reductions:
            _emit_pass(tile, reductions)
    _store_passes(tile)
    writer.constant("BLOCK", str(block))


def _is_read_at(tile: _Tile, name: str, levels: dict[str, int]) -> bool:
    """Tell whether a value of one element a row is read by such values alone, before the next pass begins."""
    users = [m for m in tile.group.members if name in operands_of(tile.value(m))]
    narrow = all(tile.group.forms[u] not in _WIDE and not isinstance(tile.value(u), Reduce) for u in users)
    return narrow and all(levels[u] == levels[name] for u in users)


def _store_passes(tile: _Tile) -> None:
    """Compute and store the wide outputs in a last pass, then store one value a row of the others."""
    wide = [o for o in tile.group.outputs if tile.group.forms[o] is Form.FULL]
    if wide:
        tile.eviction = "evict_first"
        _open_pass(tile, wide, stores=True)
        for output in wide:
            tile.store(output)
        tile.writer.indent -= 1
    for output in tile.group.outputs:
        if output not in wide:
            tile.store(output)


def _open_pass(tile: _Tile, targets: list[str], *, stores: bool = False) -> None:
    writer = tile.writer
    writer.restart()
    writer.line("for start in range(0, n_cols, BLOCK):")
    writer.indent += 1
    needed = _needed(tile, targets)
    read = [n for n in needed if n not in tile.group.members]
    tile.declare_cols("start + ", [*read, *targets] if stores else read)
    for name in needed:
        if name in tile.group.members:
            tile.assign(tile.value(name))
        else:
            tile.load(name)


def _emit_pass(tile: _Tile, reductions: list[Reduce]) -> None:
    """Walk the row once and bring home all reductions of one level."""
    writer = tile.writer
    for value in reductions:
        neutral = {"max": '-float("inf")', "min": 'float("inf")'}.get(value.kind, "0.0")
        dtype = "tl.float64" if value.dtype == "float64" else "tl.float32"
        writer.line(f"{_partial(tile, value)} = tl.full((BLOCK,), {neutral}, {dtype})")
    _open_pass(tile, [value.operand for value in reductions])
    for value in reductions:
        name, text = _partial(tile, value), tile.masked(value)
        if value.kind in ("sum", "mean"):
            writer.line(f"{name} += {text}")
        else:
            combine = writer.helpers_in(f"@{value.kind}")
            writer.line(f"{name} = {combine}({name}, {text})")
    writer.indent -= 1
    for value in reductions:
        writer.assign(value, tile.reduced(value, _partial(tile, value)), may_inline=False)


def _partial(tile: _Tile, value: Reduce) -> str:
    return f"{tile.emission.names[value.name]}_partial"
