"""Where a module's shapes and inputs come from, read from text; nothing is guessed and nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from adaexplore.capture.comment import Comment, comment_above, parse_comment, render_arguments, render_comment
from adaexplore.capture.text import flat_statements, parse_source, split_lines
from adaexplore.errors import UsageError
from adaexplore.model.task import Literal, ModuleClass, TensorSpec, Workload, WorkloadOrigin

_LITERALS: dict[str, Literal] = {"": 4096, "bool": True, "int": 4096, "float": 1.0, "str": "…"}
"""What the example shows for a parameter of that annotation."""
_FUNCTIONS = "build=make_module inputs=make_inputs"


def workload_of(source: str, module: ModuleClass) -> Workload:
    """Give the workload of ``module``.

    An ``# adaexplore:`` comment wins over ``get_inputs()``: it stands at the class and is more specific.

    Raises:
        ConfigurationError: The comment is malformed; names line and column.
        UsageError: There is none; the hint is the comment to write, with this class's own arguments.
    """
    comment = class_comment(split_lines(source), module.first_line, module.class_line)
    if comment is not None:
        return parse_comment(comment)
    if module.workload is not None:
        return module.workload
    example = example_comment(source, module)
    other = "" if example == _FUNCTIONS else f"; or name functions of yours: `# adaexplore: {_FUNCTIONS}`"
    raise UsageError(
        reason=f"{module.name} (line {module.class_line}) has no workload: nothing says which shapes it runs on",
        hint=f"Write above the class, with your names and sizes: `# adaexplore: {example}`{other}.",
    )


def class_comment(lines: Sequence[str], first_line: int, class_line: int) -> Comment | None:
    """Find the comment above the class's decorators, or else between them and ``class``."""
    return comment_above(lines, first_line) or comment_above(lines, class_line)


def kernelbench_line(tree: ast.Module) -> int | None:
    """Give the line of a module-level ``def get_inputs``, 1-based."""
    for statement in flat_statements(tree.body):
        if isinstance(statement, ast.FunctionDef) and statement.name == "get_inputs":
            return statement.lineno
    return None


def example_comment(source: str, module: ModuleClass) -> str:
    """Write a workload for ``module`` with sizes to be replaced, from its own ``__init__`` and ``forward``.

    Parameters with a default are left to it, and so is an ``__init__`` that the class inherits. Where
    ``__init__`` wants an object, the example names functions.
    """
    methods = _methods(source, module)
    init: dict[str, Literal] = {}
    for parameter in _required(methods.get("__init__")):
        if (annotation := _annotation(parameter)) not in _LITERALS:
            return _FUNCTIONS  # an object of the user's own: no literal stands for it
        init[parameter.arg] = _LITERALS[annotation]
    example = TensorSpec("float32", (8, 512, 4096))
    forward: dict[str, TensorSpec | Literal] = {}
    for parameter in _required(methods.get("forward")):
        annotation = _annotation(parameter)
        forward[parameter.arg] = _LITERALS[annotation] if annotation in _LITERALS and annotation else example
    if "forward" not in methods:
        forward["x"] = example
    return render_comment(Workload(WorkloadOrigin.COMMENT_SHAPES, 0, init=init, forward=forward))


def describe_workload(workload: Workload) -> str:
    """Say in a few words what the workload is and where it stands, for people."""
    if workload.origin is WorkloadOrigin.COMMENT_SHAPES:
        parts = [render_arguments(workload.forward) or "no arguments"]
        if workload.init:
            parts.append(f"built with {render_arguments(workload.init)}")
        if workload.mode:
            parts.append(f"{workload.mode} mode")
        what = f"{', '.join(parts)}: "
    else:
        written = render_comment(workload)
        what = f"{written}: " if written else ""
    return f"{what}{workload.origin.value}, line {workload.line}"


def _methods(source: str, module: ModuleClass) -> dict[str, ast.FunctionDef]:
    for node in ast.walk(parse_source(source)):
        if isinstance(node, ast.ClassDef) and node.lineno == module.class_line:
            return {s.name: s for s in flat_statements(node.body) if isinstance(s, ast.FunctionDef)}
    return {}


def _required(function: ast.FunctionDef | None) -> list[ast.arg]:
    """Give the parameters behind ``self`` that have no default."""
    if function is None:
        return []
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = positional[1 : len(positional) - len(arguments.defaults)]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return required + [parameter for parameter, default in named if default is None]


def _annotation(parameter: ast.arg) -> str:
    return ast.unparse(parameter.annotation).strip("'\"") if parameter.annotation else ""
