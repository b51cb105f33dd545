"""What is optimized: a module, its workload, its captured operators and its precision policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

TaskId = NewType("TaskId", str)
Dim = int | str
"""A size: a number where it is fixed, else an expression over the names in ``Graph.symbols``."""
Literal = int | float | bool | str | None


class Policy(StrEnum):
    """What counts as the same answer (DESIGN section 4)."""

    USER = "user"
    """Whatever the user's program has switched on, for baselines and candidate alike."""
    STRICT = "strict"
    """TF32 off; the candidate may use anything as accurate."""
    TF32 = "tf32"
    """TF32 on for matmul and cuDNN."""


class WorkloadOrigin(StrEnum):
    """Where shapes and inputs came from; shown wherever a number is shown."""

    KERNELBENCH = "get_inputs() in the file"
    COMMENT_FUNCTIONS = "functions named in the # adaexplore: comment"
    COMMENT_SHAPES = "shapes in the # adaexplore: comment"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor to draw from a normal distribution (integers: small and non-negative)."""

    dtype: str
    """As torch names it: ``float32``, ``bfloat16`` …"""
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """How to build the module and its inputs.

    **Invariant**: ``COMMENT_FUNCTIONS`` has ``build`` and ``inputs``; ``COMMENT_SHAPES`` has ``forward``.
    """

    origin: WorkloadOrigin
    line: int
    """1-based line of ``def get_inputs`` or of the comment."""
    build: str | None = None
    """Function that gives the module or a model that contains it; dotted names reach other modules."""
    inputs: str | None = None
    """Function that gives ``(args, kwargs)`` or the positional inputs alone."""
    init: dict[str, Literal] = field(default_factory=dict)
    """Keyword arguments of the constructor."""
    forward: dict[str, TensorSpec | Literal] = field(default_factory=dict)
    """Arguments of forward by name."""
    mode: str | None = None
    """``train`` or ``eval``; None leaves the module as built."""

    def __post_init__(self) -> None:
        if self.origin is WorkloadOrigin.COMMENT_FUNCTIONS:
            assert self.build is not None
            assert self.inputs is not None


@dataclass(frozen=True, slots=True)
class ModuleClass:
    """An ``nn.Module`` class found in text, without running anything. Lines are 1-based."""

    name: str
    """Qualified as Python would: ``Outer.Inner`` for a nested class."""
    first_line: int
    """The first decorator, or the ``class`` line where there is none."""
    class_line: int
    end_line: int
    indent: str
    """White space before ``class``."""
    has_forward: bool
    workload: Workload | None
    replacement_line: int | None
    """Line of our decorator, where the module is already replaced."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a graph input or to an operator's result, by name."""

    name: str


Argument = Ref | Literal | tuple["Argument", ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """One ATen operator of the captured graph."""

    name: str
    """Unique; the result is referred to by it."""
    target: str
    """``aten.mul.Tensor``"""
    args: tuple[Argument, ...]
    kwargs: dict[str, Argument]
    shape: tuple[Dim, ...]
    dtype: str
    contiguous: bool
    line: int | None
    """1-based line in the user's file; None where no frame of it is on the stack."""
    module: str = ""
    """Path of the submodule that ran it; empty for the module itself."""


class InputKind(StrEnum):
    """Where a graph input comes from."""

    ARGUMENT = "argument"
    PARAMETER = "parameter"
    BUFFER = "buffer"


@dataclass(frozen=True, slots=True)
class GraphInput:
    """A tensor that enters the graph."""

    name: str
    kind: InputKind
    source: str
    """Argument name of forward, or the dotted path of the parameter or buffer below the module."""
    shape: tuple[Dim, ...]
    dtype: str
    contiguous: bool
    requires_grad: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """A size that may differ from call to call."""

    name: str
    input: str
    """The graph input that shows it."""
    dim: int
    hint: int
    """Its value in the workload."""


@dataclass(frozen=True, slots=True)
class AttributeRead:
    """A Python value that forward read; the kernel holds only while it is the same."""

    path: str
    """Dotted path below the module: ``eps``, ``norm.eps``."""
    value: Literal | tuple[Literal, ...]
    how: str = "value"
    """``value``: compare with it; ``name``: a function or class, compare its qualified name (a leading dot: in the
    class's own file); ``text``: compare its
    ``str`` (dtypes, dicts of literals); ``absent``: there is no such attribute."""


@dataclass(frozen=True, slots=True)
class ForwardParameter:
    """A parameter of forward, and what the workload passed for it."""

    name: str
    is_tensor: bool
    value: Literal
    """What was passed, where it is no tensor: the kernel holds for this value only."""
    default: str | None
    """The default's repr; None where there is none."""
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """Operators as data, in execution order."""

    inputs: tuple[GraphInput, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[str, ...]
    """Names of inputs or operators."""
    output_structure: str
    """``tensor``, ``tuple`` or ``list``."""
    symbols: tuple[Symbol, ...]
    parameters: tuple[ForwardParameter, ...]
    reads: tuple[AttributeRead, ...]
    submodules: tuple[tuple[str, str], ...]
    """Path and qualified type of each submodule below the module; a leading dot as in ``AttributeRead``."""
    globals_read: tuple[AttributeRead, ...] = ()
    """Module-level values that forward and its helpers read, by name; ``module:name`` where they stand elsewhere than
    forward does; a dotted path for a field."""
    texts: tuple[tuple[str, str], ...] = ()
    """The user's functions that ran, as ``module:qualname`` (``:qualname`` in the class's own file), with the hash of
    their source."""
    exact_layout: bool = False
    """Forward asks how tensors lie in memory: only the workload's layout will do."""
    default_dtype: str = "float32"
    size_relations: tuple[str, ...] = ()
    """Python conditions on the symbols that the capture relied on: ``s0 > 2``."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where numbers were obtained. Empty strings where there is no such thing."""

    python: str
    torch: str
    triton: str
    cuda: str = ""
    gpu: str = ""
    driver: str = ""
    capability: str = ""
    """``9.0``"""
    n_processors: int = 0
    """Streaming multiprocessors."""


@dataclass(frozen=True, slots=True)
class Task:
    """One module with everything that its answer depends on."""

    id: TaskId
    path: str
    """Absolute path of the user's file."""
    class_name: str
    source_hash: str
    """Of the class's text: a receipt is stale when it differs."""
    workload: Workload
    policy: Policy
    graph: Graph
    source_lines: dict[int, str]
    """Text of the lines that the graph's operators name, for comments in the kernels."""
    shapes: str = ""
    """The workload's inputs in words: ``x=float32[8192, 4096]``."""
