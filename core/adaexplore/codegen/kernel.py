"""Write one kernel: its parameters, its statements with comments, and its launch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from adaexplore.codegen.expressions import filled, literal_text, split_long
from adaexplore.codegen.lowering.context import LoweredGraph
from adaexplore.codegen.naming import Names, access
from adaexplore.codegen.operators import ZERO_KEEPING
from adaexplore.codegen.partition import Form, Group, GroupKind
from adaexplore.codegen.values import Count, Input, Operand, Pointwise, Primitive, Reduce, View
from adaexplore.model.task import Dim, Literal, Ref, Task

HALF_TYPES = ("float16", "bfloat16")
_NAME = re.compile(r"[\w.]+")
_LONGEST_INLINE = 90
_LINE = 112


@dataclass(slots=True)
class Emission:
    """What all kernels of one candidate share."""

    task: Task
    lowered: LoweredGraph
    names: Names
    prefix: str
    """Snake case of the class: every name that the source defines starts with it."""
    allow_tf32: bool
    n_processors: int
    """Streaming multiprocessors of the GPU that schedules are made for."""
    helpers: set[str] = field(default_factory=set)
    conditions: list[str] = field(default_factory=list)
    """Python conditions on sizes (symbols) under which the source holds, for the guard."""
    call_conditions: list[str] = field(default_factory=list)
    """The same on forward's arguments and on ``module``: alignment."""

    def attribute_for(self, literal: Literal, line: int | None) -> str | None:
        """Give the module attribute that ``literal`` was read from, where the source line says so."""
        if isinstance(literal, bool) or not isinstance(literal, (int, float)) or line is None:
            return None
        text = self.task.source_lines.get(line, "")
        paths = [
            read.path
            for read in self.task.graph.reads
            if not isinstance(read.value, bool)
            and isinstance(read.value, (int, float))
            and read.value == literal
            and re.search(rf"\b{re.escape(read.path.split('.')[0])}\b", text)
        ]
        return paths[0] if len(paths) == 1 else None

    def size(self, dim: Dim) -> str:
        """Give a size as Python in terms of the inputs: ``x.shape[0]``."""
        if isinstance(dim, int):
            return str(dim)
        for symbol in self.task.graph.symbols:
            dim = re.sub(rf"\b{symbol.name}\b", f"{self.names.outside(symbol.input)}.shape[{symbol.dim}]", dim)
        return dim

    def product(self, dims: Sequence[Dim]) -> str:
        """Give the product of sizes as Python."""
        fixed = math.prod(d for d in dims if isinstance(d, int))
        factors = [self.size(d) for d in dims if not isinstance(d, int)]
        if fixed != 1 or not factors:
            factors.append(str(fixed))
        return " * ".join(factors)

    def hint(self, dims: Sequence[Dim]) -> int:
        """Give the product of sizes in the workload."""
        values = {s.name: s.hint for s in self.task.graph.symbols}
        total = 1
        for dim in dims:
            total *= dim if isinstance(dim, int) else int(eval(dim, {"__builtins__": {}}, values))
        return total


@dataclass(frozen=True, slots=True)
class KernelText:
    """One kernel and the lines of the launching function that run it."""

    kernel: str
    launch: tuple[str, ...]


@dataclass(slots=True)
class _Parameter:
    argument: str
    constexpr: bool


class KernelWriter:
    """Collects one kernel's parameters and statements.

    Statements of one source line follow a comment with that line. A value that is used once, by its own line, is
    written into its user's expression instead of getting a name.
    """

    def __init__(self, emission: Emission, group: Group, suffix: str) -> None:
        self.emission = emission
        self.group = group
        self.name = f"{emission.prefix}_{suffix}_kernel" if suffix else f"{emission.prefix}_kernel"
        self.lines: list[str] = []
        self.indent = 1
        self._parameters: dict[str, _Parameter] = {}
        self._constexprs: dict[str, _Parameter] = {}
        self._inlined: dict[str, str] = {}
        self._commented: int | None = None
        self._uses = self._count_uses()

    # -- parameters

    def pointer(self, value: str, argument: str | None = None) -> str:
        """Declare the pointer to a tensor; gives its name."""
        outside = self.emission.names.outside(value)
        name = f"{outside}_ptr"
        self._parameters.setdefault(name, _Parameter(argument or outside, False))
        return name

    def argument(self, name: str, argument: str) -> str:
        """Declare a run-time scalar."""
        self._parameters.setdefault(name, _Parameter(argument, False))
        return name

    def constant(self, name: str, argument: str) -> str:
        """Declare a compile-time constant."""
        self._constexprs.setdefault(name, _Parameter(argument, True))
        return name

    def size(self, name: str, dims: Sequence[Dim]) -> str:
        """Declare a product of sizes: a constant where all are fixed."""
        declare = self.constant if all(isinstance(d, int) for d in dims) else self.argument
        return declare(name, self.emission.product(dims))

    # -- statements

    def line(self, text: str = "") -> None:
        """Write a line at the present indentation."""
        self.lines += split_long("    " * self.indent + text)

    def comment_source(self, line: int | None) -> None:
        """Quote the user's line, once in a row."""
        if line is None or line == self._commented:
            return
        self._commented = line
        text = self.emission.task.source_lines.get(line, "").strip()
        quoted = f"# line {line}: {text}"
        self.line(quoted if len(quoted) < _LINE else quoted[: _LINE - 2] + " …")

    def forget_comment(self) -> None:
        """Quote the next line again: a new pass begins."""
        self._commented = None

    def stand_for(self, value: str, text: str) -> None:
        """Let ``text`` stand for a value from here on."""
        self._inlined[value] = text

    def reference(self, name: str) -> str:
        """Give the text that stands for a value computed before."""
        return self._inlined.get(name, self.emission.names[name])

    def operand(self, operand: Operand, line: int | None) -> str:
        """Give the text of an operand."""
        if isinstance(operand, Ref):
            return self.reference(operand.name)
        if isinstance(operand, Count):
            return self._count(operand)
        path = self.emission.attribute_for(operand, line)
        if path is not None:
            return self.constant(path.replace(".", "_"), access(path))
        return literal_text(operand)

    def _count(self, count: Count) -> str:
        rows = self.group.kind is GroupKind.ROWS and self.group.space.inner == count.dims
        n = self.size("n_cols" if rows else "n_reduced", count.dims)
        if not count.minus:
            return n
        if all(isinstance(d, int) for d in count.dims):
            return f"({n} - {count.minus})" if self.emission.hint(count.dims) >= count.minus else "0"
        # what was reduced has one element at least
        return f"({n} - 1)" if count.minus == 1 else f"tl.maximum({n} - {count.minus}, 0)"

    def expression(self, value: Pointwise) -> str:
        """Fill the value's template."""
        texts = [self.operand(o, value.line) for o in value.operands]
        if value.template == "{0}":
            return texts[0]
        return filled(self.helpers_in(value.template), texts)

    def helpers_in(self, text: str) -> str:
        """Replace ``@name`` by the name of this source's own helper, and remember that it is needed."""

        def use(match: re.Match[str]) -> str:
            self.emission.helpers.add(match[1])
            return f"_{self.emission.prefix}_{match[1]}"

        return re.sub(r"@(\w+)", use, text)

    def assign(self, value: Primitive, text: str, *, may_inline: bool = True) -> None:
        """Give ``value`` its expression: inlined where it is read once by its own line, else as a statement."""
        name = self.emission.names[value.name]
        if may_inline and self._is_inlined(value, text):
            self._inlined[value.name] = text
            return
        self.comment_source(value.line)
        self.line(f"{name} = {text}")

    def restart(self) -> None:
        """Forget inlined expressions: the values are computed anew in the next pass."""
        self._inlined.clear()
        self.forget_comment()

    def _count_uses(self) -> dict[str, list[Primitive]]:
        uses: dict[str, list[Primitive]] = {}
        for member in self.group.members:
            value = self.emission.lowered.values[member]
            if isinstance(value, (Reduce, View)):
                uses.setdefault(value.operand, []).append(value)
            elif isinstance(value, Pointwise):
                for position, operand in enumerate(value.operands):
                    if isinstance(operand, Ref):
                        times = value.template.count(f"{{{position}}}")
                        uses.setdefault(operand.name, []).extend([value] * times)
        return uses

    def _is_inlined(self, value: Primitive, text: str) -> bool:
        users = self._uses.get(value.name, [])
        if isinstance(value, (Reduce, Input)) or value.name in self.group.outputs:
            return False
        if text == self.emission.names[value.name]:
            return True
        if _NAME.fullmatch(text):
            return True  # a change of dtype or shape only
        return len(users) == 1 and users[0].line == value.line and len(text) <= _LONGEST_INLINE

    # -- the result

    def kernel(self, docstring: Sequence[str]) -> str:
        """Put signature, docstring and body together."""
        signature = [*self._ordered(), *(f"{name}: tl.constexpr" for name in self._ordered_constexprs())]
        head = f"def {self.name}({', '.join(signature)}):"
        if len(head) > _LINE:
            head = "\n".join([f"def {self.name}(", *(f"    {s}," for s in signature), "):"])
        first, *rest = docstring
        doc = [f'    """{first}"""'] if not rest else [f'    """{first}', "", *(f"    {r}" for r in rest), '    """']
        return "\n".join(["@triton.jit", head, *doc, *self.lines])

    def launch(self, grid: str, options: Sequence[str], instead: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Write a launch; ``instead`` gives other arguments for some parameters."""
        constexprs = self._ordered_constexprs()
        given = {n: p.argument for n, p in (*self._ordered().items(), *constexprs.items())} | dict(instead or {})
        arguments = [given[n] for n in self._ordered()]
        keywords = [*(f"{n}={given[n]}" for n in constexprs), *options]
        short = f"{self.name}[{grid}]({', '.join([*arguments, *keywords])})"
        if len(short) <= _LINE:
            return (short,)
        return (f"{self.name}[{grid}](", *_wrapped(arguments), *_wrapped(keywords), ")")

    def _ordered(self) -> dict[str, _Parameter]:
        return dict(sorted(self._parameters.items(), key=lambda item: _rank(item[0])))

    def _ordered_constexprs(self) -> dict[str, _Parameter]:
        return dict(sorted(self._constexprs.items(), key=lambda item: _rank(item[0])))


def _rank(parameter: str) -> tuple[int, str]:
    """Tensors first, then strides, then sizes, from the outermost in; last the schedule's constants."""
    if parameter.endswith(("_ptr", "_tiles")):
        return 0, ""
    if parameter.endswith("_stride"):
        return 1, ""
    if re.fullmatch(r"(outer_)?size_\d+", parameter):
        return 3, parameter
    return (2 if parameter == "n_rows" else 5 if parameter.isupper() else 4), ""


def _wrapped(items: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= _LINE - 4:
            lines[-1] += f" {item},"
        else:
            lines.append(f"    {item},")
    return lines


def line_range(emission: Emission, members: Sequence[str]) -> str:
    """Say which lines of the user's file a kernel replaces."""
    lines = sorted({v.line for m in members if (v := emission.lowered.values[m]).line is not None})
    file = emission.task.path.replace("\\", "/").rsplit("/", 1)[-1]
    if not lines:
        return file
    return f"line {lines[0]} of {file}" if len(lines) == 1 else f"lines {lines[0]}-{lines[-1]} of {file}"


def zero_where_padded(emission: Emission, group: Group, name: str) -> bool:
    """Tell whether lanes beyond the row are zero: loads along it fill with zero, and these operators keep it."""
    value = emission.lowered.values[name]
    if name not in group.members:
        return group.forms[name] in (Form.FULL, Form.COLUMN, Form.PARTIAL)
    if not isinstance(value, Pointwise):
        return False
    keeps: Callable[[Operand], bool] = lambda o: isinstance(o, Ref) and zero_where_padded(emission, group, o.name)  # noqa: E731
    operands = value.operands
    if value.template in ("{0} + {1}", "{0} - {1}", "{0}", "{0} * {0}", "{0} * {0} * {0}"):
        return all(keeps(o) for o in operands)
    if value.template == "{0} * {1}":
        finite = [isinstance(o, (int, float)) and math.isfinite(o) for o in operands]
        return all(keeps(o) or f for o, f in zip(operands, finite, strict=True))
    return value.label in ZERO_KEEPING and len(operands) == 1 and keeps(operands[0])


def upcast(dtype: str) -> str:
    """Give the cast after a load: half types are computed in fp32."""
    return ".to(tl.float32)" if dtype in HALF_TYPES else ""
