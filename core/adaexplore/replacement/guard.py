"""The guard: when the verified kernel applies. Everything the capture fixed is compared with what it is at the call."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from adaexplore.codegen.naming import access
from adaexplore.model.task import AttributeRead, Dim, Graph, GraphInput, InputKind, Literal


def render_guard(graph: Graph, prefix: str, conditions: Sequence[str]) -> str:
    """Give two functions: ``_<prefix>_unchanged(module, names)`` and ``_<prefix>_accepts(module, names, …)``.

    Args:
        graph: As captured.
        prefix: Snake case of the class.
        conditions: On symbols, beyond the capture's own: what the candidate holds for.
    """
    state = _state_conditions(graph)
    call = _call_conditions(graph, conditions)
    parameters = ", ".join(["module", "names", *(p.name for p in graph.parameters)])
    tensors = [p.name for p in graph.parameters if p.is_tensor]
    device = f"{tensors[0]}.device" if tensors else 'torch.device("cpu")'
    return "\n".join(
        [
            f"def _{prefix}_unchanged(module, names):",
            '    """Tell whether everything that the module reads beside tensors is what it was when verified."""',
            *_conjunction(state),
            "",
            "",
            f"def _{prefix}_accepts({parameters}):",
            '    """Tell whether the verified kernel applies to this call."""',
            *([f"    if type({tensors[0]}) not in (torch.Tensor, torch.nn.Parameter):", "        return False"]
              if tensors else []),
            f"    device = {device}",
            *_conjunction(["_may_launch(device)", f"_{prefix}_unchanged(module, names)", *call]),
        ]
    )  # fmt: skip


def _conjunction(conditions: Sequence[str]) -> list[str]:
    if not conditions:
        return ["    return True"]
    if len(conditions) == 1:
        return [f"    return {conditions[0]}"]
    return ["    return (", f"        {conditions[0]}", *(f"        and {c}" for c in conditions[1:]), "    )"]


def _state_conditions(graph: Graph) -> list[str]:
    conditions = [f"torch.get_default_dtype() is torch.{graph.default_dtype}"]
    if graph.submodules:
        conditions.append("not torch.nn.modules.module._has_any_global_hook()")
    conditions += _children_conditions(graph, "", "")
    for path, kind in graph.submodules:
        conditions.append(f"_is_bare({access(path)}, {_qualified(kind)})")
        conditions += _children_conditions(graph, path, kind)
    conditions += [_compare(read, access(read.path)) for read in graph.reads if read.how != "absent"]
    conditions += [_is_absent(read.path) for read in graph.reads if read.how == "absent"]
    conditions += [_compare(read, _global(read.path)) for read in graph.globals_read]
    return conditions


def _children_conditions(graph: Graph, path: str, kind: str) -> list[str]:
    """Give a condition on the names of a container's children: forward may walk over all there are."""
    prefix = f"{path}." if path else ""
    children = tuple(p[len(prefix) :] for p, _ in graph.submodules if p.startswith(prefix))
    children = tuple(name for name in children if "." not in name)
    if ".container." in kind or not all(name.isidentifier() for name in children):
        return [f"tuple({access(path) if path else 'module'}._modules) == {children!r}"]
    return []


def _is_absent(path: str) -> str:
    owner, _, name = path.rpartition(".")
    return f'not hasattr({access(owner) if owner else "module"}, "{name}")'


def _global(path: str) -> str:
    return f'names.get("{path}")' if path.isidentifier() else f'_global(names, "{path}")'


def _compare(read: AttributeRead, text: str) -> str:
    if read.how == "name":
        return f"_is_named({text}, {_qualified(str(read.value))})"
    if read.how == "text":
        return f"str({text}) == {read.value!r}"
    return _equals(text, read.value)


def _qualified(name: str) -> str:
    """Give a name as an expression: the class's own file may be run as a script."""
    return f'names["__name__"] + "{name}"' if name.startswith(".") else f'"{name}"'


def _equals(text: str, value: Literal | tuple[Literal, ...]) -> str:
    if value is None or isinstance(value, bool):
        return f"{text} is {value!r}"
    if isinstance(value, tuple):
        return f"_are_same({text}, ({''.join(f'{_source(item)}, ' for item in value).rstrip()}))"
    return f"_is_same({text}, {_source(value)})"


def _source(value: Literal) -> str:
    finite = not isinstance(value, float) or math.isfinite(value)
    return repr(value) if finite else f'float("{value}")'


def _call_conditions(graph: Graph, extra: Sequence[str]) -> list[str]:
    symbols = {s.name: f"{_symbol_source(graph, s.input)}.shape[{s.dim}]" for s in graph.symbols}
    conditions = []
    for parameter in graph.parameters:
        if not parameter.is_tensor:
            conditions.append(_equals(parameter.name, parameter.value))
    for entry in graph.inputs:
        conditions += _tensor_conditions(entry, symbols, exact=graph.exact_layout)
    conditions += [_holds(_substituted(relation, symbols)) for relation in (*graph.size_relations, *extra)]
    return list(dict.fromkeys(conditions))


def _holds(relation: str) -> str:
    """Give a condition that is False where ``relation`` divides by zero."""
    return f"_holds(lambda: {relation})" if "//" in relation or "%" in relation else relation


def _symbol_source(graph: Graph, name: str) -> str:
    return next(_text(entry) for entry in graph.inputs if entry.name == name)


def _text(entry: GraphInput) -> str:
    return entry.source if entry.kind is InputKind.ARGUMENT else access(entry.source)


def _tensor_conditions(entry: GraphInput, symbols: dict[str, str], *, exact: bool) -> list[str]:
    text = _text(entry)
    conditions = [f"_is_plain({text}, torch.{entry.dtype}, device)"]
    if entry.kind is not InputKind.ARGUMENT:
        conditions.append(f"{text}.shape == {_tuple(entry.shape)}")
        if entry.contiguous:
            conditions.append(f"{text}.is_contiguous()")
        return conditions
    conditions.append(f"{text}.dim() == {len(entry.shape)}")
    for dim, size in enumerate(entry.shape):
        own = f"{text}.shape[{dim}]"
        wanted = _substituted(str(size), symbols)
        if wanted == own:
            conditions.append(f"{own} > 0")
        else:
            conditions.append(f"{own} == {wanted}")
    if entry.contiguous:
        conditions.append(f"{text}.is_contiguous()" if exact else f"_has_rows({text})")
    elif exact:
        conditions.append(f"not {text}.is_contiguous()")
    return conditions


def _tuple(shape: tuple[Dim, ...]) -> str:
    return repr(shape)


def _substituted(expression: str, symbols: dict[str, str]) -> str:
    for name, text in symbols.items():
        expression = re.sub(rf"\b{re.escape(name)}\b", text, expression)
    return expression
