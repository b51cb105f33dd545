"""Sizes that may differ from call to call: expressions over symbols, and what an export relied on."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from adaexplore.worker.loading import Instance, Refusal
from adaexplore.worker.messages import Fault

_EXPRESSION = re.compile(r"[\w\s*+\-/()]+")
_FUNCTIONS = {"min": min, "max": max, "abs": abs}


def evaluate(expression: str, sizes: dict[str, int]) -> int:
    """Give the value of a size or relation; 0, which no size is and where no relation holds, if it divides by 0."""
    try:
        return int(eval(expression, {"__builtins__": {}, **_FUNCTIONS}, dict(sizes)))
    except ZeroDivisionError:
        return 0


def size_of(value: Any) -> int | str:
    """Give a size as a number, or as a Python expression over symbols."""
    if isinstance(value, int):
        return value
    text = _python(value.node.expr)
    if text.isdigit():
        return int(text)
    if not _EXPRESSION.fullmatch(text):
        raise Refusal(Fault.NOT_CAPTURED, f"a size depends on the inputs as {text}", line=None)
    return text


def depends_on_values(value: Any) -> bool:
    """Tell whether a size or number is known only once a tensor's values are."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) and bool(free_unbacked_symbols(value))


def relations_of(program: ExportedProgram, symbols: list[dict[str, Any]]) -> list[str]:
    """Give the relations between sizes that the export relied on, beyond what shapes show.

    Raises:
        Refusal: One of them cannot be asked at a call.
    """
    placeholders = [n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"]
    tensors = [v for v in placeholders if isinstance(v, torch.Tensor) and hasattr(v, "fake_mode")]
    tensor = next(iter(tensors), None)
    env = getattr(getattr(tensor, "fake_mode", None), "shape_env", None)
    if env is None:
        return []
    known = {s["name"] for s in symbols}
    relations = set()
    for guard in env.guards:
        expression = env.simplify(guard.expr)
        if str(expression) not in ("True", "true"):
            relations.add(_python(expression))
    # A layout that differs is made contiguous before a kernel reads it: what it relied on need not be asked.
    relations = {r for r in relations if not _names(r) - known or _names(r) - known - _strides(tensors)}
    for relation in relations:
        require_known(relation, known)
    return sorted(relations)


def _strides(tensors: Iterable[torch.Tensor]) -> set[str]:
    """Give the symbols that stand for strides."""
    strides = [s for tensor in tensors for s in tensor.stride() if isinstance(s, torch.SymInt)]
    return {str(symbol) for stride in strides for symbol in stride.node.expr.free_symbols}


def _names(expression: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}


def require_known(expression: str, known: Iterable[str]) -> None:
    """Refuse an expression that names anything but ``known`` symbols, ``min``, ``max`` and ``abs``."""
    if _names(expression) - set(known) - set(_FUNCTIONS):
        raise Refusal(Fault.NOT_CAPTURED, f"it holds only for sizes with {expression}, which no call shows", line=None)


def larger_than_one(
    instance: Instance, program: ExportedProgram, inputs: list[dict[str, Any]], symbols: list[dict[str, Any]],
    relations: list[str],
) -> list[str]:  # fmt: skip
    """Give ``s > 1`` for each symbol where a size of one takes another course through forward.

    An export never sees that: it takes every size it is told to leave open to be at least two. Symbols for which
    ``relations`` rule out a size of one are left out.
    """
    wanted = _targets(program)
    hints = {s["name"]: s["hint"] for s in symbols}
    symbols = [s for s in symbols if all(evaluate(r, hints | {s["name"]: 1}) for r in relations)]
    if not symbols or _course_at_one(instance, inputs, hints, symbols) == wanted:
        return []
    return [f"{s['name']} > 1" for s in symbols if _course_at_one(instance, inputs, hints, [s]) != wanted] or [
        f"{s['name']} > 1" for s in symbols
    ]


def _course_at_one(
    instance: Instance, inputs: list[dict[str, Any]], hints: dict[str, int], ones: list[dict[str, Any]]
) -> list[str] | None:
    """Give the operators of an export where ``ones`` have size one; None where there is none."""
    sizes = hints | {s["name"]: 1 for s in ones}
    own = instance.arguments()
    replaced: dict[int, torch.Tensor] = {}
    dynamic: dict[str, Any] = {}
    for entry in inputs:
        if entry["kind"] != "argument":
            continue
        value = own[entry["source"]]
        shape = [d if isinstance(d, int) else evaluate(d, sizes) for d in entry["shape"]]
        if any(size > old or size < 1 for size, old in zip(shape, value.shape, strict=True)):
            return None
        replaced[id(value)] = value.detach()[tuple(slice(size) for size in shape)].clone()
        open_dims = [d for d, size in enumerate(entry["shape"]) if isinstance(size, str) and shape[d] > 1]
        dynamic[entry["source"]] = dict.fromkeys(open_dims, Dim.AUTO)
    args = tuple(replaced.get(id(a), a) for a in instance.args)
    kwargs = {name: replaced.get(id(a), a) for name, a in instance.kwargs.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = {name: dynamic.get(name) for name in instance.given()}
            return _targets(torch.export.export(instance.module, args, kwargs, dynamic_shapes=given, strict=False))
    except Exception:  # noqa: BLE001 - the user's code may refuse such sizes in any way
        return None


def _targets(program: ExportedProgram) -> list[str]:
    """Give the operators on tensors, with their literal arguments and their results' number of dimensions."""
    found = []
    for node in program.graph.nodes:
        result = node.meta.get("val")
        if node.op == "call_function" and isinstance(result, (torch.Tensor, tuple, list)):
            literals = [repr(a) for a in (*node.args, *node.kwargs.values()) if isinstance(a, (int, float, bool))]
            rank = str(result.dim()) if isinstance(result, torch.Tensor) else ""
            found.append(" ".join((str(node.target), *literals, rank)))
    return found


def _python(expression: Any) -> str:
    from torch.utils._sympy.printers import PythonPrinter

    return str(PythonPrinter().doprint(expression))
