"""See which Python values forward reads, so that the kernel can be guarded on them.

``torch.export`` fixes what a module reads at call time: an epsilon, a flag, a constant of the file. Each such read is
recorded here while the module is exported. What can neither be compared later nor is a tensor or a module is refused.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn

_INTERNAL = (set(nn.Module().__dict__) | set(dir(nn.Module))) - {"training"}
_BASE_FILE = sys.modules[nn.Module.__module__].__file__
_NN_FOLDER = str(_BASE_FILE).rsplit("module.py", 1)[0]
_TORCH_FOLDER = str(torch.__file__).rsplit("__init__.py", 1)[0]
_LITERALS = (bool, int, float, str, type(None))


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
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return "text", str(value)
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return "name", qualified_name(value)
    raise UnwatchableError(type(value).__name__)


class Watch:
    """What was read: attributes by path, constants by name."""

    def __init__(self, module: nn.Module, user_file: str) -> None:
        self.paths = {id(m): path for path, m in module.named_modules()}
        self.user_file = user_file
        self.attributes: dict[str, tuple[str, Any]] = {}
        self.unwatchable: dict[str, str] = {}
        self.codes: dict[CodeType, dict[str, Any]] = {}

    def note_attribute(self, owner: nn.Module, name: str, value: Any) -> None:
        """Record a read of ``owner.name``, unless tensors, modules or methods make it the graph's business."""
        if id(owner) not in self.paths or name in _INTERNAL:
            return
        if isinstance(value, (torch.Tensor, nn.Module, MethodType)):
            return
        path = ".".join(filter(None, (self.paths[id(owner)], name)))
        self._note(path, value)

    def _note(self, path: str, value: Any) -> None:
        if isinstance(value, (list, tuple)) and all(isinstance(v, (torch.Tensor, nn.Module)) for v in value):
            return
        try:
            self.attributes[path] = comparable(value)
        except UnwatchableError as error:
            if not self._note_fields(path, value):
                self.unwatchable[path] = str(error)

    def _note_fields(self, path: str, value: Any) -> bool:
        """Record the literal fields of a configuration object; False if it is none."""
        if dataclasses.is_dataclass(value):
            names = [f.name for f in dataclasses.fields(value)]
        elif type(value).__module__ == "types" or type(value).__name__.endswith(("Config", "Namespace")):
            names = list(vars(value))
        else:
            return False
        for name in names:
            try:
                self.attributes[f"{path}.{name}"] = comparable(getattr(value, name))
            except UnwatchableError:
                continue
        return True

    def constants(self) -> dict[str, Any]:
        """Give the literal globals of the user's file that its executed functions name."""
        found: dict[str, Any] = {}
        for code, namespace in self.codes.items():
            for name in code.co_names:
                value = namespace.get(name, self)
                if isinstance(value, _LITERALS) and not name.startswith("__"):
                    found[name] = value
        return found


def _is_reader(frame: FrameType, user_file: str) -> bool:
    """Only forward code counts: the user's, and that of ``torch.nn``'s own modules."""
    name = frame.f_code.co_filename
    if name == _BASE_FILE:
        return False
    return name == user_file or name.startswith(_NN_FOLDER) or not name.startswith((_TORCH_FOLDER, "<"))


@contextmanager
def watching(module: nn.Module, user_module: ModuleType) -> Iterator[Watch]:
    """Record reads of ``module`` and its submodules while the block runs."""
    user_file = str(user_module.__file__)
    watch = Watch(module, user_file)
    original = nn.Module.__dict__.get("__getattribute__")

    def spy(self: nn.Module, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name not in _INTERNAL and _is_reader(sys._getframe(1), user_file):
            watch.note_attribute(self, name, value)
        return value

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == user_file:
            watch.codes[frame.f_code] = frame.f_globals

    previous = sys.getprofile()
    nn.Module.__getattribute__ = spy
    sys.setprofile(profile)
    try:
        yield watch
    finally:
        sys.setprofile(previous)
        if original is None:
            del nn.Module.__getattribute__
        else:
            nn.Module.__getattribute__ = original
