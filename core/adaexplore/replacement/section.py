"""A class's section of the sidecar: the candidate's kernels, the guard, gradients, and the class decorator."""

from __future__ import annotations

import ast
from importlib import resources
from string import Template

from adaexplore.codegen.naming import access, signature
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.identity import snake_case
from adaexplore.model.run import Run, StepRecord
from adaexplore.model.task import Graph, InputKind, Task
from adaexplore.replacement.guard import render_guard
from adaexplore.replacement.receipt import Receipt, Section, function_name

_PROVIDED = frozenset(
    {
        "torch",
        "triton",
        "triton.language",
        "contextlib",
        "copy",
        "functools",
        "inspect",
        "os",
        "sys",
        "threading",
        "ast",
        "hashlib",
        "importlib.util",
        "json",
        "textwrap",
        "warnings",
    }
)
"""What the sidecar's header imports already."""


def render_code(task: Task, candidate: Candidate) -> str:
    """Give the section's code: what is evaluated is what is inserted.

    It needs the sidecar's header above it, and nothing else.
    """
    prefix = snake_case(task.class_name)
    conditions: list[str] = []
    for key in ("conditions", "call_conditions"):
        given = candidate.params.get(key, [])
        assert isinstance(given, (list, tuple))
        conditions += map(str, given)
    guard = render_guard(task.graph, prefix, conditions)
    return "\n\n\n".join([_without_imports(candidate.source), guard, _decorator(task, prefix)]) + "\n"


def _without_imports(source: str) -> str:
    """Drop the leading imports that the header provides."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import) and all(alias.name in _PROVIDED for alias in node.names):
            for number in range(node.lineno - 1, (node.end_lineno or node.lineno)):
                lines[number] = ""
    return "\n".join(lines).strip("\n")


def _decorator(task: Task, prefix: str) -> str:
    graph = task.graph
    template = resources.files(__package__).joinpath("section_decorator.py.txt").read_text(encoding="utf-8")
    tensors = [p.name for p in graph.parameters if p.is_tensor]
    others = [p.name for p in graph.parameters if not p.is_tensor]
    # Frozen weights may be set free later, and buffers must not change before the backward: all of them go through.
    paths = [e.source for e in graph.inputs if e.kind is not InputKind.ARGUMENT and "float" in e.dtype]
    weights = [access(path, "self") for path in paths]
    floats = [t for t in tensors if _is_float(graph, t)]
    listed = graph.output_structure == "list"
    return (
        Template(template)
        .substitute(
            prefix=prefix,
            class_name=task.class_name,
            texts=_texts(graph),
            function=function_name(task.class_name),
            signature=signature(graph, "self"),
            passed="".join(f", {f'{p.name}=' if p.keyword_only else ''}{p.name}" for p in graph.parameters),
            passed_names="".join(f", {p.name}" for p in graph.parameters),
            tensors_argument="".join(f", {t}" for t in tensors),
            # by name: literals may stand between the tensors in forward's order
            tensors_by_name="".join(f", {t}={t}" for t in tensors),
            tensor_names="(" + "".join(f'"{t}", ' for t in tensors).rstrip() + ")",
            tensor_list=", ".join(tensors),
            n_tensors=len(tensors),
            weights="".join(f", {w}" for w in weights),
            owners="[" + ", ".join(_owner(path) for path in paths) + "]",
            needs_grad=" or ".join(f"{t}.requires_grad" for t in (*floats, *weights)) or "False",
            first=tensors[0],
            # autograd looks for tensors in a tuple, and in nothing else
            as_tuple="tuple(" if listed else "",
            as_list="list(" if listed else "",
            close=")" if listed else "",
            others="{" + ", ".join(f'"{o}": {o}' for o in others) + "}",
        )
        .rstrip("\n")
    )


def _owner(path: str) -> str:
    """Give where a parameter is kept, and its name there: ``(ctx.module.norm, "weight")``."""
    owner, _, name = path.rpartition(".")
    return f'({access(owner, "ctx.module") if owner else "ctx.module"}, "{name}")'


def _texts(graph: Graph) -> str:
    """Give the executed functions and the hashes of their source as a literal."""
    return "{" + "".join(f'\n    "{place}": "{digest}",' for place, digest in graph.texts) + "\n}"


def _is_float(graph: Graph, argument: str) -> bool:
    entry = next(e for e in graph.inputs if e.kind is InputKind.ARGUMENT and e.source == argument)
    return "float" in entry.dtype


def render_section(run: Run, record: StepRecord, final: Evaluation | None) -> Section:
    """Give the section to insert for a run's candidate.

    Args:
        run: Whose task it is.
        record: The step that made the candidate.
        final: Its confirmation in a fresh process, where there is one; its numbers go before the step's.
    """
    task, evaluation = run.task, final or record.evaluation
    correctness, measurement = evaluation.correctness, evaluation.measurement
    assert correctness is not None, "only what passed is inserted"
    environment = evaluation.environment or run.environment
    receipt = Receipt(
        source_hash=task.source_hash,
        task_id=task.id,
        candidate_id=record.candidate.id,
        run_id=run.id,
        date=run.created_at[:10],
        policy=task.policy,
        workload=f"{task.shapes}, from {task.workload.origin}",
        torch=environment.torch,
        triton=environment.triton,
        how="; ".join(filter(None, (correctness.how, correctness.note))),
        relative_error=correctness.relative_error,
        max_error=correctness.max_error,
        eager_relative_error=correctness.eager_relative_error,
        eager_max_error=correctness.eager_max_error,
        gpu=environment.gpu if measurement else "",
        speedup=measurement.speedup if measurement else None,
        speedup_over_compile=measurement.speedup_over_compile if measurement else None,
    )
    return Section(task.class_name, function_name(task.class_name), render_code(task, record.candidate), receipt)
