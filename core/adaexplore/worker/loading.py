"""Import the user's file and build the module and its inputs as the workload says."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from adaexplore.worker.messages import Fault


class Refusal(Exception):
    """The request cannot be fulfilled; becomes the reply."""

    def __init__(self, fault: Fault, message: str, **details: object) -> None:
        super().__init__(message)
        self.fault = fault
        self.details = details


@dataclass(slots=True)
class Instance:
    """The module as the workload builds it, and one call's inputs."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    user_module: ModuleType

    def arguments(self) -> dict[str, Any]:
        """Give the call's arguments by name, defaults included."""
        bound = inspect.signature(self.module.forward).bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def given(self) -> list[str]:
        """Give the names of the arguments that the call itself passes."""
        return list(inspect.signature(self.module.forward).bind(*self.args, **self.kwargs).arguments)


def describe_error(error: BaseException, path: str) -> str:
    """Give type, message and the last line of the user's file on the stack."""
    text = str(error).strip().splitlines()
    head = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    line = error_line(error, path)
    return f"{head} ({Path(path).name}:{line})" if line else head


def error_line(error: BaseException, path: str) -> int | None:
    """Give the last line of ``path`` on the error's stack."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return lines[-1] if lines else None


def import_file(path: Path) -> ModuleType:
    """Import ``path`` as the package member it is, or under its own name.

    A file in a package is imported by its dotted name, with the folder above the topmost package on ``sys.path``.
    Nothing is written beside it.
    """
    sys.dont_write_bytecode = True
    root = path.parent
    parts = [path.stem] if path.stem != "__init__" else []
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    name = ".".join(parts)
    if len(parts) > 1:
        return importlib.import_module(name)
    if name in sys.modules:  # the file is named like a module that is already here
        name = f"_adaexplore_user_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _resolve(module: ModuleType, dotted: str) -> Any:
    target: Any = module
    parts = dotted.split(".")
    if not hasattr(module, parts[0]):
        for cut in range(len(parts) - 1, 0, -1):
            try:
                target = importlib.import_module(".".join(parts[:cut]))
            except ModuleNotFoundError:
                continue
            parts = parts[cut:]
            break
    for part in parts:
        target = getattr(target, part)
    return target


def _resolve_class(module: ModuleType, qualified: str) -> type[nn.Module]:
    target: Any = module
    for part in qualified.split("."):
        target = getattr(target, part)
    return target


def draw(dtype: torch.dtype, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Draw a tensor: normal floats, integers below 10, fair booleans."""
    if dtype.is_floating_point:
        return torch.randn(shape, device=device, dtype=torch.float32).to(dtype)
    if dtype is torch.bool:
        return torch.rand(shape, device=device) < 0.5
    return torch.randint(0, 10, shape, device=device, dtype=dtype)


def _from_shapes(cls: type[nn.Module], workload: dict[str, Any], device: torch.device) -> tuple[nn.Module, Any, Any]:
    module = cls(**workload["init"])
    kwargs: dict[str, Any] = {}
    dtypes: list[torch.dtype] = []
    for name, spec in workload["forward"].items():
        if isinstance(spec, dict):
            dtype = getattr(torch, spec["dtype"])
            kwargs[name] = draw(dtype, tuple(spec["shape"]), device)
            dtypes.append(dtype)
        else:
            kwargs[name] = spec
    floats = [d for d in dtypes if d.is_floating_point]
    if floats and floats[0] is not torch.get_default_dtype():
        module = module.to(floats[0])  # as a user would run it: weights in the dtype of the activations
    return module, (), kwargs


class _Captured(Exception):
    """The submodule of interest was called."""


def _call_inside(model: nn.Module, cls: type[nn.Module], inputs: Any) -> tuple[nn.Module, Any, Any]:
    """Find the first ``cls`` inside ``model`` and the inputs it gets when the model runs."""
    inner = next((m for m in model.modules() if isinstance(m, cls)), None)
    if inner is None:
        raise Refusal(
            Fault.NOT_INSTANTIABLE, f"what build= gave ({type(model).__name__}) holds no {cls.__name__}", what="build="
        )
    caught: list[tuple[Any, Any]] = []

    def catch(_: nn.Module, args: Any, kwargs: Any) -> None:
        caught.append((args, kwargs))
        raise _Captured

    handle = inner.register_forward_pre_hook(catch, with_kwargs=True)
    try:
        model(*inputs[0], **inputs[1])
    except _Captured:
        pass
    finally:
        handle.remove()
    if not caught:
        raise Refusal(
            Fault.NOT_INSTANTIABLE, f"the model that build= gave never called its {cls.__name__}", what="build="
        )
    return inner, *caught[0]


def _from_functions(
    user_module: ModuleType, cls: type[nn.Module], workload: dict[str, Any]
) -> tuple[nn.Module, Any, Any]:
    model = _resolve(user_module, workload["build"])()
    given = _resolve(user_module, workload["inputs"])()
    is_pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], dict)
    inputs = (tuple(given[0]), given[1]) if is_pair else (tuple(given), {})
    if type(model) is cls:
        return model, *inputs
    return _call_inside(model, cls, inputs)


def _guarded(what: str, path: Path, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Refusal:
        raise
    except (Exception, SystemExit) as error:
        raise Refusal(Fault.NOT_INSTANTIABLE, describe_error(error, str(path)), what=what) from error


def build_instance(path: str, class_name: str, workload: dict[str, Any], device: str, seed: int) -> Instance:
    """Build the module and the inputs of one call on ``device``.

    Raises:
        Refusal: The user's file, constructor or functions raised.
    """
    file = Path(path)
    user_module = _guarded("importing the file", file, lambda: import_file(file))
    cls = _guarded("importing the file", file, lambda: _resolve_class(user_module, class_name))
    target = torch.device(device)
    torch.manual_seed(seed)

    def build() -> tuple[nn.Module, Any, Any]:
        if workload["build"]:
            return _from_functions(user_module, cls, workload)
        if workload["forward"]:
            return _from_shapes(cls, workload, target)
        init = user_module.get_init_inputs() if hasattr(user_module, "get_init_inputs") else []
        if isinstance(init, dict):
            return cls(**init), tuple(user_module.get_inputs()), {}
        return cls(*init), tuple(user_module.get_inputs()), {}

    module, args, kwargs = _guarded(f"building {class_name}", file, build)
    if workload["mode"]:
        module.train(workload["mode"] == "train")

    def move(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().to(target).requires_grad_(value.requires_grad)

    args, kwargs = pytree.tree_map(move, (args, kwargs))
    module = _guarded(f"moving {class_name} to {device}", file, lambda: module.to(target))
    args, kwargs = _in_forwards_order(module, tuple(args), dict(kwargs))
    return Instance(module, args, kwargs, user_module)


def _in_forwards_order(module: nn.Module, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give the same call with its arguments in the order of forward's parameters.

    Raises:
        Refusal: Forward cannot be called so.
    """
    signature = inspect.signature(module.forward)
    for parameter in signature.parameters.values():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise Refusal(Fault.NOT_CAPTURED, f"forward takes *{parameter.name}; give its arguments names", line=None)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise Refusal(Fault.FORWARD_FAILED, f"TypeError: {error}") from error
    return bound.args, bound.kwargs
