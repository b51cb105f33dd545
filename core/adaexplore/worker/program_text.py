"""What the executed functions are and name: their source, and the globals, classes and modules they read from.

``torch.export`` fixes all of it. Functions of the user's files are noted with a hash of their text, so that the kernel
is switched off when the text changes; values that their text names are compared at each call; what can change without
being noticed (the clock, the environment, a closure) is refused.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from adaexplore.model.identity import source_hash

CHANGING_MODULES = frozenset({"time", "random", "datetime", "secrets", "uuid"})
"""Modules of the standard library whose functions give something else at each call."""
_LAYOUT_QUESTIONS = frozenset({"is_contiguous", "stride", "storage_offset", "data_ptr"})
_GRADIENT_QUESTIONS = frozenset({"requires_grad", "grad_fn", "is_leaf"})


@functools.cache
def parsed(code: CodeType) -> ast.AST | None:
    """Give the syntax tree of a function's source; None where there is no source, or none of its own."""
    if code.co_name.startswith("<"):
        return None  # a lambda or comprehension: its text is part of another's
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError, TypeError):
        return None


def text_hash(code: CodeType) -> str | None:
    """Give the hash of a function's source, blind to comments and layout."""
    try:
        return source_hash(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError):
        return None


def is_nested(code: CodeType, codes: Iterator[CodeType]) -> bool:
    """Tell whether ``code`` is written inside another of ``codes``: a comprehension, a local function."""
    return any(code is not other and _contains(other, code) for other in codes)


def _contains(outer: CodeType, inner: CodeType) -> bool:
    constants = [c for c in outer.co_consts if isinstance(c, CodeType)]
    return inner in constants or any(_contains(c, inner) for c in constants)


def global_chains(tree: ast.AST, code: CodeType) -> Iterator[tuple[list[str], int]]:
    """Give each ``name.attribute…`` that starts at no local variable, with its line in the function's source."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Name, ast.Attribute)) or id(node) in inner:
            continue
        names: list[str] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            names.insert(0, value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id not in code.co_varnames + code.co_cellvars + code.co_freevars:
            yield [value.id, *names], node.lineno


def written_globals(tree: ast.AST, code: CodeType) -> Iterator[str]:
    """Give what the function assigns outside itself: ``global`` names, and attributes or items of globals."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        elif isinstance(node, ast.Delete):
            targets = node.targets
        for target in targets:
            root = target
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            known = code.co_varnames + code.co_cellvars + code.co_freevars
            if root is not target and isinstance(root, ast.Name) and root.id not in known:
                yield ast.unparse(target)


def asks_for_layout(tree: ast.AST) -> bool:
    """Tell whether the function asks how a tensor lies in memory."""
    return any(isinstance(node, ast.Attribute) and node.attr in _LAYOUT_QUESTIONS for node in ast.walk(tree))


def asks_for_gradients(tree: ast.AST) -> str:
    """Give the attribute by which the function asks whether a tensor takes part in autograd; empty if it does not."""
    found = (n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in _GRADIENT_QUESTIONS)
    return next(found, "")


def resolve(chain: list[str], namespace: dict[str, Any]) -> tuple[list[str], Any] | None:
    """Follow a chain through modules and classes; gives what was followed and the value, None for unknown names."""
    if chain[0] not in namespace:
        return None  # a builtin
    value, followed = namespace[chain[0]], [chain[0]]
    for name in chain[1:]:
        if not isinstance(value, (ModuleType, type)) or not hasattr(value, name):
            break
        value = getattr(value, name)
        followed.append(name)
    return followed, value
