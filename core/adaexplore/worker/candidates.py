"""Bring a candidate's source to life in this process, and see what it launches."""

from __future__ import annotations

import ast
import copy
import importlib.util
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from adaexplore.worker.loading import Instance, Refusal
from adaexplore.worker.messages import Fault


@dataclass(slots=True)
class Launches:
    """What a candidate launched: compiled kernels by name (None where the interpreter ran them), and how often."""

    compiled: dict[str, Any] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    count: int = 0


class _Recorded:
    """Stands for a kernel in the candidate's module and notes each launch."""

    def __init__(self, name: str, kernel: Any, launches: Launches) -> None:
        self._name = name
        self._kernel = kernel
        self._launches = launches

    def __getitem__(self, grid: Any) -> Any:
        launcher = self._kernel[grid]

        def launch(*args: Any, **kwargs: Any) -> Any:
            self._launches.count += 1
            compiled = launcher(*args, **kwargs)
            self._launches.compiled[self._name] = compiled
            self._launches.options[self._name] = {k: kwargs[k] for k in ("num_warps", "num_stages") if k in kwargs}
            return compiled

        return launch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


@dataclass(slots=True)
class LoadedCandidate:
    """The sidecar as a module: the launching function, the decorator, and its launches."""

    module: ModuleType
    function: str
    decorator: str
    launches: Launches

    def call(self, target: nn.Module, args: Any, kwargs: Any) -> Any:
        """Run the kernels directly, past the guard."""
        return getattr(self.module, self.function)(target, *args, **kwargs)

    def replaced(self, instance: Instance) -> nn.Module:
        """Give a copy of the module whose class is a subclass that the candidate's decorator was applied to."""
        original = type(instance.module)
        namespace = {"__module__": original.__module__, "__qualname__": original.__qualname__}
        subclass = type(original.__name__, (original,), namespace)
        target = copy.deepcopy(instance.module)
        target.__class__ = getattr(self.module, self.decorator)(subclass)
        return target


def _launched_names(source: str) -> set[str]:
    """Give the names that are launched as ``name[grid](…)``."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {f.value.id for f in calls if isinstance(f, ast.Subscript) and isinstance(f.value, ast.Name)}


def load_candidate(source: str, function: str, decorator: str, parent: str) -> LoadedCandidate:
    """Import ``source`` from a file of its own below ``parent``: Triton reads kernels from files.

    Raises:
        Refusal: It raised, or does not define what it must.
    """
    folder = Path(tempfile.mkdtemp(prefix="candidate-", dir=parent))
    file = folder / "candidate.py"
    file.write_text(source, encoding="utf-8")
    name = f"_adaexplore_candidate_{folder.name.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise candidate_fault(error, "rejected") from error
    for wanted in (function, decorator):
        if not hasattr(module, wanted):
            raise Refusal(Fault.CANDIDATE, f"the source defines no {wanted}", status="rejected")
    launches = Launches()
    for kernel in _launched_names(source):
        if hasattr(module, kernel):
            setattr(module, kernel, _Recorded(kernel, getattr(module, kernel), launches))
    return LoadedCandidate(module, function, decorator, launches)


def candidate_fault(error: BaseException, status: str) -> Refusal:
    """Turn what a candidate raised into a reply: the right status, and the message with its line."""
    import torch

    name, text = type(error).__name__, str(error).strip()
    if isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError)):
        status = "out_of_memory"
    elif name in ("CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure", "PTXASError",
                  "OutOfResources") or "PassManager::run failed" in text:  # fmt: skip
        status = "compile_error"
    elif device_is_lost(error):
        status = "crashed"  # the worker must be replaced
    lines = [line for line in text.splitlines() if line.strip()]
    message = " ".join(lines[-1].split()) if name == "CompilationError" and lines else (lines[0] if lines else "")
    where = _line_in_candidate(error)
    return Refusal(Fault.CANDIDATE, f"{name}: {message[:300]}{where}", status=status)


def device_is_lost(error: BaseException) -> bool:
    """Tell whether the GPU's context is gone, so that nothing more can be done in this process."""
    if isinstance(error, Refusal):
        return error.details.get("status") == "crashed"
    return "CUDA error" in str(error) or type(error).__name__ == "AcceleratorError" or not _gpu_answers()


def _gpu_answers() -> bool:
    """Tell whether the GPU still works for this process, where it uses one: a lost context fails at everything.

    Errors do not tell by themselves: Triton reports a device-side assertion as it reports a wrong argument.
    """
    import torch

    if not torch.cuda.is_initialized():
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def _line_in_candidate(error: BaseException) -> str:
    import traceback

    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith("candidate.py")]
    return f" (line {frames[-1].lineno}: {frames[-1].line})" if frames else ""
