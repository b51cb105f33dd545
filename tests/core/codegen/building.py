"""Graphs written by hand, for tests of the steps between a graph and its source."""

from __future__ import annotations

from dataclasses import dataclass, field

from adaexplore.codegen.lowering import lower_task
from adaexplore.codegen.lowering.context import LoweredGraph
from adaexplore.model.task import (
    Argument,
    Dim,
    ForwardParameter,
    Graph,
    GraphInput,
    InputKind,
    Operator,
    Policy,
    Ref,
    Symbol,
    Task,
    TaskId,
    Workload,
    WorkloadOrigin,
)

Shape = tuple[Dim, ...]


@dataclass
class Builder:
    """Collects inputs and operators; ``task`` puts them together."""

    lines: dict[int, str] = field(default_factory=dict)
    inputs: list[GraphInput] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    symbols: tuple[Symbol, ...] = ()

    def argument(self, name: str, *shape: Dim, dtype: str = "float32") -> Ref:
        self.inputs.append(GraphInput(name, InputKind.ARGUMENT, name, shape, dtype, True))
        return Ref(name)

    def parameter(self, source: str, *shape: Dim) -> Ref:
        name = f"p_{source.replace('.', '_')}"
        self.inputs.append(GraphInput(name, InputKind.PARAMETER, source, shape, "float32", True, True))
        return Ref(name)

    def op(self, name: str, *args: Argument, shape: Shape, line: int | None = None, dtype: str = "float32") -> Ref:
        """Add ``aten.<name>``; gives the reference to its result, which is named like the operator."""
        unique = name
        while any(o.name == unique for o in self.operators):
            unique += "_again"
        self.operators.append(Operator(unique, f"aten.{name}.default", args, {}, shape, dtype, True, line))
        return Ref(unique)

    def task(self, *outputs: Ref) -> Task:
        arguments = [e for e in self.inputs if e.kind is InputKind.ARGUMENT]
        graph = Graph(
            inputs=tuple(self.inputs),
            operators=tuple(self.operators),
            outputs=tuple(o.name for o in outputs),
            output_structure="tensor" if len(outputs) == 1 else "tuple",
            symbols=self.symbols,
            parameters=tuple(ForwardParameter(e.source, True, None, None) for e in arguments),
            reads=(),
            submodules=(),
        )
        workload = Workload(WorkloadOrigin.KERNELBENCH, 1)
        return Task(TaskId("task"), "/m.py", "Built", "", workload, Policy.STRICT, graph, self.lines)

    def lowered(self, *outputs: Ref) -> LoweredGraph:
        return lower_task(self.task(*outputs))
