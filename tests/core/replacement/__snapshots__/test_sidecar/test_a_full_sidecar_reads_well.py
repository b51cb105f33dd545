"""Triton kernels for model.py, written by adaexplore.

Each section replaces the forward of one class of that file where its guard says that the verified kernel applies; the
original forward runs everywhere else. The line `@__import__(...)` above the class switches it on; without that line
nothing here is used. "Revert to PyTorch" in the editor removes both.
"""
# adaexplore-sidecar: format 1
# fmt: off
# isort: skip_file
# ruff: noqa
# ruff: noqa: PGH004
# mypy: ignore-errors

import ast
import contextlib
import copy
import functools
import hashlib
import importlib.util
import inspect
import json
import os
import sys
import textwrap
import threading
import warnings
from types import SimpleNamespace

import torch

try:
    import triton
    import triton.language as tl

    HAS_TRITON = True
except ImportError:  # no Triton on this platform: the original forward runs

    def _keep(kernel=None, **options):
        return kernel if kernel is not None else _keep

    triton = SimpleNamespace(jit=_keep)
    tl = SimpleNamespace(constexpr=type("constexpr", (), {}))
    HAS_TRITON = False

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # then kernels run on CPU tensors, too


def _may_launch(device):
    """Tell whether kernels may run there now: not while another system traces, transforms or autocasts the call."""
    return (
        HAS_TRITON
        and (device.type == "cuda" or (INTERPRETED and device.type == "cpu"))
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled(device.type)
        and not torch.jit.is_tracing()
        and torch.autograd.forward_ad._current_level < 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._len_torch_dispatch_stack() == 0
    )


def _is_plain(tensor, dtype, device):
    """Tell whether this is an ordinary tensor of that dtype on that device."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.dtype is dtype and tensor.device == device


def _has_rows(tensor):
    """Tell whether the last dimension is dense; a matrix may have padded rows."""
    if tensor.dim() == 2 and tensor.stride(1) == 1 and tensor.stride(0) >= tensor.size(1):
        return True
    return tensor.is_contiguous()


def _is_bare(module, name):
    """Tell whether a submodule is of the type that was verified, and calling it would run its own forward alone."""
    kind = type(module)
    return (
        f"{kind.__module__}.{kind.__qualname__}" == name
        and not module._forward_hooks
        and not module._forward_pre_hooks
        and not module._backward_hooks
        and not module._backward_pre_hooks
        and "forward" not in module.__dict__
    )


def _is_named(value, name):
    """Tell whether a function or class is the one that was verified."""
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}" == name


def _is_same(value, known):
    """Tell whether this is the number or text that was verified: no tensor, and 1 is neither True nor 1.0."""
    return type(value) is type(known) and (value == known or (value != value and known != known))


def _are_same(values, known):
    """The same for a tuple or list of them."""
    return isinstance(values, (tuple, list)) and len(values) == len(known) and all(map(_is_same, values, known))


def _global(names, path):
    """Give the value at ``name.field`` or ``module:name.field``; None where there is none."""
    place, _, path = path.rpartition(":")
    first, *fields = path.split(".")
    value = (vars(sys.modules[place]) if place in sys.modules else {} if place else names).get(first)
    for field in fields:
        value = getattr(value, field, None)
    return value


def _holds(relation):
    """Tell whether a relation between sizes holds; one that divides by zero does not."""
    try:
        return relation()
    except ZeroDivisionError:
        return False


_SUBSTITUTING = threading.RLock()


@contextlib.contextmanager
def _in_place_of(owners, tensors):
    """Let modules use ``tensors`` for their parameters and buffers; ``owners`` are pairs of a module and a name."""
    with _SUBSTITUTING:
        places = [owner._parameters if name in owner._parameters else owner._buffers for owner, name in owners]
        kept = [place[name] for place, (_, name) in zip(places, owners)]
        try:
            for place, (_, name), tensor in zip(places, owners, tensors):
                place[name] = tensor
            yield
        finally:
            for place, (_, name), tensor in zip(places, owners, kept):
                place[name] = tensor


def _sidecar_of(names):
    """Give the sidecar beside the file with these globals, where that is another one than this."""
    beside = os.path.splitext(names.get("__file__") or "")[0] + "_triton.py"
    if os.path.basename(beside) != os.path.basename(__file__) or not os.path.exists(beside):
        return None
    if os.path.realpath(beside) == os.path.realpath(__file__):
        return None
    spec = importlib.util.spec_from_file_location(os.path.realpath(beside), beside)
    module = sys.modules.get(spec.name)
    if module is None:
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def __getattr__(name):
    """Give a decorator that this sidecar lacks: another file's sidecar of the same name may be meant."""
    if not name.startswith("triton_"):
        raise AttributeError(f"{__file__} has no {name}")

    def find(cls):
        other = _sidecar_of(inspect.unwrap(cls.forward).__globals__)
        if other is None:
            raise ImportError(f"{__file__} has no {name}: optimize {cls.__qualname__} again, or remove this line")
        return getattr(other, name)(cls)

    return find


def _is_current(cls, names, texts):
    """Tell whether the functions still have the source that was verified; warn where one has not."""
    for place, known in texts.items():
        file, _, path = place.partition(":")
        try:
            text = inspect.getsource(inspect.unwrap(_function(cls, sys.modules[file].__dict__ if file else names, path)))
            tree = ast.parse(textwrap.dedent(text))
        except (AttributeError, KeyError, OSError, SyntaxError, TypeError):
            tree = None
        if tree is None or _hash(tree) != known:
            warnings.warn(
                f"{path} has changed since the Triton kernel of {cls.__qualname__} was verified: the original forward "
                "runs. Optimize it again, or remove the line above the class.",
                stacklevel=3,
            )
            return False
    return True


def _function(cls, names, path):
    """Give the function at a qualified name; methods of the class itself from the class."""
    if path.startswith(f"{cls.__qualname__}."):
        value = inspect.getattr_static(cls, path.removeprefix(f"{cls.__qualname__}."))
        return getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
    first, *rest = path.split(".")
    value = names[first]
    for name in rest:
        value = getattr(value, name)
    return value


def _hash(tree):
    """Give the hash of a function's source, blind to comments, layout and decorators of classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.decorator_list = []
    return hashlib.sha256(json.dumps(("source", ast.unparse(tree))).encode()).hexdigest()[:16]


def _for_torch_script(forward):
    """Give what torch.jit.script asks a module for: the same module with the forward that TorchScript can read."""

    def __prepare_scriptable__(self):
        if type(self).forward is not forward:
            return self
        twin = copy.copy(self)
        twin.forward = forward.__wrapped__.__get__(twin)
        return twin

    return __prepare_scriptable__


# --- adaexplore: RMSNorm ---
# receipt 1f171405
#   source_hash: "0123456789abcdef"
#   task_id: "task-1"
#   candidate_id: "fedcba9876543210"
#   run_id: "run-1"
#   date: "2026-03-01"
#   policy: "strict"
#   workload: "x=bfloat16[8192, 4096]: shapes in the # adaexplore: comment, line 7"
#   torch: "2.11.0"
#   triton: "3.6.0"
#   how: "gpu"
#   relative_error: 1.5e-07
#   max_error: 2.25e-06
#   eager_relative_error: 1e-07
#   eager_max_error: 3e-06
#   gpu: "NVIDIA H200"
#   speedup: 2.3149
#   speedup_over_compile: 1.2
#   checksum: 7bbf78f0f546c05a

@triton.jit
def _triton_rms_norm_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def triton_rms_norm(cls):
    cls.replaced_by = "triton_rms_norm"
    return cls
# --- end of RMSNorm ---


# --- adaexplore: Outer.Inner ---
# receipt 5fd76b8e
#   source_hash: "0123456789abcdef"
#   task_id: "task-1"
#   candidate_id: "fedcba9876543210"
#   run_id: "run-1"
#   date: "2026-03-01"
#   policy: "strict"
#   workload: "x=bfloat16[8192, 4096]: shapes in the # adaexplore: comment, line 7"
#   torch: "2.11.0"
#   triton: "3.6.0"
#   how: "interpreter"
#   relative_error: 1.5e-07
#   max_error: 2.25e-06
#   eager_relative_error: 1e-07
#   eager_max_error: 3e-06
#   gpu: ""
#   speedup: null
#   speedup_over_compile: null
#   checksum: 9adf8707fd131711

@triton.jit
def _triton_outer_inner_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def triton_outer_inner(cls):
    cls.replaced_by = "triton_outer_inner"
    return cls
# --- end of Outer.Inner ---
