"""Find ``nn.Module`` classes in text by their syntax; imports nothing of the user's."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from adaexplore.capture.comment import parse_comment
from adaexplore.capture.text import flat_statements, parse_source, split_lines
from adaexplore.capture.workload import class_comment, kernelbench_line
from adaexplore.errors import ConfigurationError, UsageError
from adaexplore.model.task import ModuleClass, Workload, WorkloadOrigin

_NOT_MODULES = frozenset({"Parameter", "UninitializedParameter", "Buffer", "UninitializedBuffer"})
"""Classes of ``torch.nn`` that are no modules."""
_STARRED = frozenset({
    "Module", "ModuleDict", "ModuleList", "Sequential", "Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d",
    "Embedding", "LayerNorm", "GroupNorm", "RMSNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Dropout",
    "Softmax", "GELU", "SiLU", "ReLU", "MultiheadAttention",
})  # fmt: skip
"""Names that ``from torch.nn import *`` is taken to bring."""
_KERNELBENCH_CLASS = "Model"
_OURS = re.compile(r"[ \t\f]*@.*#[ \t]*adaexplore:[^\r\n]*")


def find_modules(source: str) -> list[ModuleClass]:
    """Find the ``nn.Module`` classes of a file, in the order of their lines.

    Found are direct and indirect subclasses of ``torch.nn``'s classes under any alias, nested classes and those under
    ``if`` or ``try``; not those inside functions, which nothing can name from outside. A class whose
    ``# adaexplore:`` comment is malformed is found without a workload: ``workload_of`` tells what is wrong.

    Raises:
        SyntaxError: As Python does.
    """
    tree = parse_source(source)
    lines = split_lines(source)
    finder = _Finder()
    finder.visit(tree.body, "", [finder.names])
    kernelbench = kernelbench_line(tree)
    names = [name for name, _ in finder.found]
    owner = names[0] if len(names) == 1 else _KERNELBENCH_CLASS
    modules = []
    for name, node in finder.found:
        protocol = Workload(WorkloadOrigin.KERNELBENCH, kernelbench) if kernelbench and name == owner else None
        modules.append(_describe(name, node, lines, protocol))
    return modules


def select_module(modules: Sequence[ModuleClass], name: str | None, path: Path) -> ModuleClass:
    """Choose the class that ``FILE::NAME`` means.

    Without a name: the only class, or else the only one with a workload, or else the one that ``get_inputs()`` is for.
    The last part of a nested class's name is enough where it is unique.

    Raises:
        UsageError: There is no such class, or several fit.
    """
    if not modules:
        raise UsageError(
            reason=f"{path}: no nn.Module class in this file",
            hint="Name a file with a class that derives from torch.nn.Module.",
        )
    if name is not None:
        fitting = [m for m in modules if m.name == name]
        fitting = fitting or [m for m in modules if m.name.rpartition(".")[2] == name]
    else:
        described = [m for m in modules if m.workload]
        protocol = [m for m in described if m.workload and m.workload.origin is WorkloadOrigin.KERNELBENCH]
        everything = list(modules)
        fitting = next((some for some in (everything, described, protocol) if len(some) == 1), everything)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        names = [m.name for m in modules]
        close = difflib.get_close_matches(name or "", names, 1)
        meant = f" Did you mean {close[0]}?" if close else ""
        raise UsageError(reason=f"{path}: no nn.Module class {name}.{meant}", hint=f"Found: {', '.join(names)}.")
    if len({m.name for m in fitting}) < len(fitting):
        where = ", ".join(str(m.class_line) for m in fitting)
        raise UsageError(
            reason=f"{path}: {fitting[0].name} is defined at lines {where}, and text cannot tell which one runs",
            hint="Give the classes different names.",
        )
    raise UsageError(
        reason=f"{path}: several nn.Module classes, which one is meant?",
        hint=f"Name one: {', '.join(f'{path}::{m.name}' for m in fitting)}",
    )


def class_source(source: str, module: ModuleClass) -> str:
    """Give the class's text from ``class`` to its last line, decorators left out, for ``model.identity.source_hash``.

    A nested class is moved to the margin, so that its text parses by itself.
    """
    lines = split_lines(source)[module.class_line - 1 : module.end_line]
    return textwrap.dedent("".join(lines)) if module.indent else "".join(lines)


def _describe(name: str, node: ast.ClassDef, lines: Sequence[str], protocol: Workload | None) -> ModuleClass:
    first_line = min([node.lineno, *(_decorator_line(d, lines) for d in node.decorator_list)])
    return ModuleClass(
        name=name,
        first_line=first_line,
        class_line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        indent=lines[node.lineno - 1][: node.col_offset],
        has_forward=any(_defines_forward(statement) for statement in flat_statements(node.body)),
        workload=_workload(lines, first_line, node.lineno, protocol),
        replacement_line=_replacement_line(node, lines),
    )


def _workload(lines: Sequence[str], first_line: int, class_line: int, protocol: Workload | None) -> Workload | None:
    comment = class_comment(lines, first_line, class_line)
    if comment is None:
        return protocol
    try:
        return parse_comment(comment)
    except ConfigurationError:
        return None


def _decorator_line(decorator: ast.expr, lines: Sequence[str]) -> int:
    """Give the line of the decorator's ``@``, which stands above the expression where that is in parentheses."""
    line = decorator.lineno
    while line > 1 and not lines[line - 1].lstrip(" \t\f").startswith("@"):
        line -= 1
    return line


def _replacement_line(node: ast.ClassDef, lines: Sequence[str]) -> int | None:
    """Find the decorator that ends in a comment of ours, also where a formatter has wrapped it."""
    for decorator in node.decorator_list:
        start, end = _decorator_line(decorator, lines), decorator.end_lineno or decorator.lineno
        last = lines[end - 1]
        behind = last.encode()[decorator.end_col_offset or 0 :].decode(errors="ignore")
        if _OURS.match("@" + behind):
            return start
    return None


def _defines_forward(statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef(name="forward") | ast.AnnAssign(target=ast.Name(id="forward")):
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == "forward" for target in targets)
    return False


class _Finder:
    """Follows names through imports, assignments and classes.

    A name stands for a dotted path: ``torch.nn.Module``; with a leading dot for a class of this file,
    ``.Outer.Inner``; with a leading question mark for what nothing is known of.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.found: list[tuple[str, ast.ClassDef]] = []
        self._modules: set[str] = set()
        self._starred = False

    def visit(self, body: Sequence[ast.stmt], prefix: str, scopes: list[dict[str, str]]) -> None:
        """Go through the statements of one scope; ``scopes`` are the file's and, in a class, the class's names."""
        for statement in flat_statements(body):
            match statement:
                case ast.Import(names=aliases):
                    for alias in aliases:
                        path = alias.name if alias.asname else alias.name.partition(".")[0]
                        self._bind(scopes, alias.asname or path, path)
                case ast.ImportFrom(names=aliases, module=package, level=level):
                    for alias in aliases:
                        self._starred |= alias.name == "*" and package == "torch.nn"
                        path = f"?.{alias.name}" if level else f"{package}.{alias.name}"
                        self._bind(scopes, alias.asname or alias.name, path)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    scopes[-1][name] = self._resolve(value, scopes)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    scopes[-1][name] = self._resolve(value, scopes)
                case ast.ClassDef():
                    self._visit_class(statement, prefix, scopes)

    def _visit_class(self, node: ast.ClassDef, prefix: str, scopes: list[dict[str, str]]) -> None:
        name = prefix + node.name
        if any(self._is_module(self._resolve(base, scopes)) for base in node.bases):
            self.found.append((name, node))
            self._modules.add(name)
        scopes[-1][node.name] = f".{name}"
        # As in Python, a class does not see the names of the class around it.
        self.visit(node.body, f"{name}.", [self.names, {}])

    def _bind(self, scopes: list[dict[str, str]], name: str, path: str) -> None:
        known = scopes[-1].get(name, "")
        # In `try: from torch.nn import RMSNorm` / `except ImportError: from .compat import RMSNorm` both are modules.
        if not known.startswith("torch") or path.startswith("torch"):
            scopes[-1][name] = path

    def _resolve(self, node: ast.expr, scopes: list[dict[str, str]]) -> str:
        match node:
            case ast.Name(id=name):
                for scope in reversed(scopes):
                    if name in scope:
                        return scope[name]
                return f"torch.nn.{name}" if self._starred and name in _STARRED else "?"
            case ast.Attribute(value=value, attr=name):
                return f"{self._resolve(value, scopes)}.{name}"
            case ast.Subscript(value=value):
                return self._resolve(value, scopes)
        return "?"

    def _is_module(self, path: str) -> bool:
        if path.startswith("."):
            return path[1:] in self._modules
        package, _, name = path.rpartition(".")
        in_torch = package == "torch.nn" or package.startswith("torch.nn.modules")
        return in_torch and name[:1].isupper() and name not in _NOT_MODULES
