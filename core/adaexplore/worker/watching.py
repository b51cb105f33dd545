"""See which Python values forward reads, so that the kernel can be guarded on them.

``torch.export`` fixes what a module reads at call time: an epsilon, a flag, a constant of the file. Each such read is
recorded here while the module is exported. What can neither be compared later nor is a tensor or a module is refused.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn

from adaexplore.worker import program_text

_INTERNAL = (set(nn.Module().__dict__) | set(dir(nn.Module))) - {"training"}
_BASE_FILE = sys.modules[nn.Module.__module__].__file__
_NN_FOLDER = str(_BASE_FILE).rsplit("module.py", 1)[0]
_TORCH_FOLDER = str(torch.__file__).rsplit("__init__.py", 1)[0]
_OURS = os.path.dirname(os.path.dirname(__file__))
_LITERALS = (bool, int, float, str, type(None))
_INSTALLED = tuple(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib"))
"""Whose functions are taken to stay as they are."""


class UnwatchableError(Exception):
    """Forward reads a value that could change without being noticed."""


def qualified_name(value: Any) -> str:
    """Give ``module.qualname`` of a class or function."""
    return f"{value.__module__}.{value.__qualname__}"


def comparable(value: Any) -> tuple[str, Any]:
    """Give how ``value`` is compared later (``AttributeRead.how``), and the literal that stands for it.

    Raises:
        UnwatchableError: There is none.
    """
    if isinstance(value, _LITERALS):
        return "value", value
    if isinstance(value, (tuple, list)) and all(isinstance(item, _LITERALS) for item in value):
        return "value", tuple(value)
    if isinstance(value, (torch.dtype, torch.memory_format, torch.device)) or _is_literal_dict(value):
        return "text", str(value)
    if isinstance(value, FunctionType) and (value.__closure__ or value.__name__ == "<lambda>"):
        raise UnwatchableError("function without a name of its own")
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return "name", qualified_name(value)
    raise UnwatchableError(type(value).__name__)


def _is_literal_dict(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_is_literal_dict(item) for item in value)
    if isinstance(value, dict):
        return all(_is_literal_dict(item) for pair in value.items() for item in pair)
    return isinstance(value, _LITERALS)


class Watch:
    """What was read: attributes by path, globals by name (those of other files as ``module:name``)."""

    def __init__(self, module: nn.Module, user_file: str) -> None:
        self.paths = {id(m): path for path, m in module.named_modules()}
        self.user_file = user_file
        self.attributes: dict[str, tuple[str, Any]] = {}
        self.unwatchable: dict[str, tuple[str, int | None]] = {}
        """By path: what it is, and the line of the user's file that reads it."""
        self.written: dict[str, int | None] = {}
        self.codes: dict[CodeType, dict[str, Any]] = {}
        self.own_globals = inspect.unwrap(type(module).forward).__globals__

    def note_attribute(self, owner: nn.Module, name: str, value: Any, line: int | None) -> None:
        """Record a read of ``owner.name``, unless tensors, modules or methods make it the graph's business."""
        if id(owner) not in self.paths or name in _INTERNAL:
            return
        if isinstance(value, (torch.Tensor, nn.Module)):
            return
        if isinstance(value, MethodType) and id(value.__self__) in self.paths:
            return
        self._note(self._path(owner, name), value, line)

    def note_absent(self, owner: nn.Module, name: str) -> None:
        """Record that ``owner`` was asked for ``name`` and has a None there, or nothing."""
        if id(owner) not in self.paths or name in _INTERNAL:
            return
        kept = [getattr(owner, kind) for kind in ("_parameters", "_buffers", "_modules")]
        if not any(name in tensors for tensors in kept):
            self.attributes[self._path(owner, name)] = ("absent", None)
        elif not any(tensors.get(name) is not None for tensors in kept):
            self.attributes[self._path(owner, name)] = ("value", None)

    def note_write(self, owner: nn.Module, name: str, line: int | None) -> None:
        """Record that forward assigns ``owner.name``."""
        if id(owner) in self.paths:
            self.written[f"self.{self._path(owner, name)}"] = line

    def _path(self, owner: nn.Module, name: str) -> str:
        return ".".join(filter(None, (self.paths[id(owner)], name)))

    def _note(self, path: str, value: Any, line: int | None) -> None:
        if isinstance(value, (list, tuple)) and all(isinstance(v, (torch.Tensor, nn.Module)) for v in value):
            return
        try:
            self.attributes[path] = comparable(value)
        except UnwatchableError as error:
            fields = _fields(path, value)
            if fields is None:
                self.unwatchable[f"self.{path}"] = str(error), line
            else:
                self.attributes |= fields

    def globals_read(self) -> dict[str, tuple[str, Any]]:
        """Give the globals that the executed functions of the user's files name, with how to compare them.

        Functions and classes are compared by name, values of classes and modules by value; tensors are the graph's
        business. What can change unnoticed is noted as unwatchable.
        """
        found: dict[str, tuple[str, Any]] = {}
        for code, namespace in self.codes.items():
            tree = program_text.parsed(code)
            if tree is None:
                continue
            prefix = "" if namespace is self.own_globals else f"{namespace.get('__name__')}:"
            line = code.co_firstlineno if code.co_filename == self.user_file else None
            for name in program_text.written_globals(tree, code):
                self.written.setdefault(name, line)
            for chain, offset in program_text.global_chains(tree, code):
                self._note_global(prefix, chain, namespace, None if line is None else line + offset - 1, found)
        return found

    def _note_global(
        self, prefix: str, chain: list[str], namespace: dict[str, Any], line: int | None,
        found: dict[str, tuple[str, Any]],
    ) -> None:  # fmt: skip
        resolved = program_text.resolve(chain, namespace)
        if resolved is None or chain[0].startswith("__"):
            return
        path, value = resolved
        root = namespace[path[0]]
        installed = not _is_users_value(root, self.user_file)
        if isinstance(root, ModuleType) and installed:
            if root.__name__.split(".")[0] in program_text.CHANGING_MODULES or path[1:] in (["environ"], ["getenv"]):
                self.unwatchable[".".join(path)] = "reading that is something else at each call", line
            return
        if getattr(value, "__module__", None) in program_text.CHANGING_MODULES:
            self.unwatchable[".".join(path)] = "reading that is something else at each call", line
            return
        if isinstance(value, (ModuleType, torch.Tensor, nn.Module, logging.Logger)):
            return
        text = prefix + ".".join(path)
        try:
            found[text] = comparable(value)
        except UnwatchableError as error:
            fields = _fields(text, value)
            if fields is None:
                self.unwatchable[".".join(path)] = str(error), line
            else:
                found |= fields

    def texts(self) -> dict[str, str]:
        """Give the executed functions of the user's files as ``module:qualname`` with the hash of their text.

        ``:qualname`` stands for one in the class's own file.
        """
        found = {}
        for code, namespace in self.codes.items():
            digest = program_text.text_hash(code)
            if digest is None or "<" in code.co_qualname or program_text.is_nested(code, iter(self.codes)):
                continue
            place = "" if namespace is self.own_globals else str(namespace.get("__name__"))
            found[f"{place}:{code.co_qualname}"] = digest
        return found

    def asks_for_layout(self) -> bool:
        """Tell whether an executed function asks how a tensor lies in memory."""
        trees = (program_text.parsed(code) for code in self.codes)
        return any(tree is not None and program_text.asks_for_layout(tree) for tree in trees)

    def note_call(self, frame: FrameType) -> None:
        """Record that a function of the user's runs; a closure over a number is a value that nobody can compare."""
        code = frame.f_code
        if code in self.codes:
            return
        if not program_text.is_nested(code, iter(self.codes)):
            for name in code.co_freevars:
                if isinstance(frame.f_locals.get(name), (bool, int, float, str, list, dict)):
                    line = code.co_firstlineno if code.co_filename == self.user_file else None
                    self.unwatchable[name] = "variable of an enclosing function", line
        self.codes[code] = frame.f_globals
        tree = program_text.parsed(code)
        question = "" if tree is None else program_text.asks_for_gradients(tree)
        if question:
            line = code.co_firstlineno if code.co_filename == self.user_file else None
            self.unwatchable[f"a tensor's {question}"] = "question that the kernel cannot answer for forward", line


def _is_users_value(value: Any, user_file: str) -> bool:
    """Tell whether a module, class or function comes from the user's own files; anything else counts as theirs."""
    if isinstance(value, ModuleType):
        return _is_users(str(getattr(value, "__file__", None) or "<built in>"), user_file)
    return True


def _fields(path: str, value: Any) -> dict[str, tuple[str, Any]] | None:
    """Give the comparable fields of a configuration object; None if it is none."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value)]
    elif type(value).__module__ == "types" or type(value).__name__.endswith(("Config", "Namespace")):
        names = [n for n in dir(value) if not n.startswith("_") and not callable(getattr(value, n))]
    else:
        return None
    found = {}
    for name in names:
        field = getattr(value, name)
        try:
            found[f"{path}.{name}"] = comparable(field)
        except UnwatchableError:
            inner = _fields(f"{path}.{name}", field)
            if inner is None:
                if not isinstance(field, (torch.Tensor, nn.Module)):
                    return None  # it could change unnoticed
            else:
                found |= inner
    return found


def _is_reader(frame: FrameType, user_file: str) -> bool:
    """Only forward code counts: the user's, and that of ``torch.nn``'s own modules."""
    name = frame.f_code.co_filename
    if name == _BASE_FILE:
        return False
    return name == user_file or name.startswith(_NN_FOLDER) or not name.startswith((_TORCH_FOLDER, "<"))


def _is_users(name: str, user_file: str) -> bool:
    """Tell the user's own files from those of installed packages and from our sidecars."""
    if name == user_file:
        return True
    return not name.startswith((*_INSTALLED, _TORCH_FOLDER, _OURS, "<")) and not _is_sidecar(name)


@functools.cache
def _is_sidecar(name: str) -> bool:
    """Tell whether a file is a sidecar of ours: its class is being optimized again."""
    try:
        with open(name, encoding="utf-8") as file:
            return name.endswith("_triton.py") and "# adaexplore-sidecar:" in file.read(2000)
    except (OSError, UnicodeDecodeError):
        return False


def _make_spies(watch: Watch, user_file: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Give what stands for ``__getattribute__`` and ``__setattr__`` of modules meanwhile, and a profile function."""
    assign = nn.Module.__setattr__

    def line_of(frame: FrameType) -> int | None:
        return frame.f_lineno if frame.f_code.co_filename == user_file else None

    def read(self: nn.Module, name: str) -> Any:
        frame = sys._getframe(1)
        reads = name not in _INTERNAL and _is_reader(frame, user_file)
        try:
            value = object.__getattribute__(self, name)
        except AttributeError:
            if reads:
                watch.note_absent(self, name)
            raise
        if reads:
            watch.note_attribute(self, name, value, line_of(frame))
        return value

    def write(self: nn.Module, name: str, value: Any) -> None:
        frame = sys._getframe(1)
        if _is_users(frame.f_code.co_filename, user_file):
            watch.note_write(self, name, line_of(frame))
        assign(self, name, value)

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and _is_users(frame.f_code.co_filename, user_file):
            watch.note_call(frame)

    return read, write, profile


@contextmanager
def watching(module: nn.Module, user_module: ModuleType) -> Iterator[Watch]:
    """Record reads of ``module`` and its submodules while the block runs."""
    user_file = str(user_module.__file__)
    watch = Watch(module, user_file)
    read, write, profile = _make_spies(watch, user_file)
    getter, setter = nn.Module.__dict__.get("__getattribute__"), nn.Module.__setattr__
    previous = sys.getprofile()
    nn.Module.__getattribute__ = read
    nn.Module.__setattr__ = write
    sys.setprofile(profile)
    try:
        yield watch
    finally:
        sys.setprofile(previous)
        nn.Module.__setattr__ = setter
        if getter is None:
            del nn.Module.__getattribute__
        else:
            nn.Module.__getattribute__ = getter
