"""The open module as a graph: ``torch.export`` with decompositions, every operator with its source line."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree as pytree

from adaexplore.worker.loading import Instance, Refusal, describe_error, error_line
from adaexplore.worker.messages import Fault
from adaexplore.worker.sizes import depends_on_values, larger_than_one, relations_of, require_known, size_of
from adaexplore.worker.watching import Watch, qualified_name, watching

_KEPT_WHOLE = ("linear", "matmul", "layer_norm", "native_layer_norm", "rms_norm", "silu", "gelu")
"""Operators that a kernel family takes as they are; everything else is decomposed to core ATen."""
_DECOMPOSED_TOO = ("_softmax", "_log_softmax", "logsumexp", "mish", "softplus", "elu", "celu", "hardswish",
                   "hardsigmoid", "addcmul", "addcdiv", "lerp", "linalg_vector_norm", "std", "std_mean",
                   "_fused_rms_norm", "logaddexp", "square")  # fmt: skip
_SYMBOL = re.compile(r"\b[su]\d+\b")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def _decompositions() -> Any:
    from torch._decomp import get_decompositions

    aten = torch.ops.aten
    table = torch.export.default_decompositions()
    extra = [getattr(aten, name) for name in _DECOMPOSED_TOO if hasattr(aten, name)]
    for operator, function in get_decompositions(extra).items():
        table[operator] = function
    for operator in list(table):
        if str(operator).split(".")[1] in _KEPT_WHOLE:  # aten.linear.default
            del table[operator]
    return table


def _bind(instance: Instance) -> dict[str, Any]:
    """Give the arguments of the call by name, those left to their defaults included, in forward's order."""
    signature = inspect.signature(instance.module.forward)
    bound = signature.bind(*instance.args, **instance.kwargs)
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        if not isinstance(value, (torch.Tensor, bool, int, float, str, type(None))):
            kind = type(value).__name__
            raise Refusal(
                Fault.NOT_CAPTURED, f"argument {name} of forward is a {kind}; tensors and plain values are supported",
                line=None,
            )  # fmt: skip
    if not any(isinstance(value, torch.Tensor) for value in bound.arguments.values()):
        raise Refusal(Fault.NOT_CAPTURED, "forward takes no tensor", line=None)
    return dict(bound.arguments)


def _refuse_hooks(instance: Instance) -> None:
    for path, module in instance.module.named_modules():
        if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks:
            raise Refusal(
                Fault.NOT_CAPTURED, f"self{path and '.'}{path} has hooks, which a kernel would skip", line=None
            )


def _source(value: Any) -> str:
    """Give a literal as Python text."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _parameters(instance: Instance, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    entries = []
    for parameter in inspect.signature(instance.module.forward).parameters.values():
        value = arguments[parameter.name]
        is_tensor = isinstance(value, torch.Tensor)
        entries.append(
            {
                "name": parameter.name,
                "is_tensor": is_tensor,
                "value": None if is_tensor else value,
                "default": None if parameter.default is inspect.Parameter.empty else _source(parameter.default),
                "keyword_only": parameter.kind is inspect.Parameter.KEYWORD_ONLY,
            }
        )
    return entries


def _dynamic(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {dim: Dim.AUTO for dim in range(value.dim())} if isinstance(value, torch.Tensor) else None
        for name, value in arguments.items()
    }


def _export(instance: Instance, arguments: dict[str, Any]) -> tuple[ExportedProgram, Watch]:
    with warnings.catch_warnings(), watching(instance.module, instance.user_module) as watch:
        warnings.simplefilter("ignore")
        given = {name: arguments[name] for name in instance.given()}
        program = torch.export.export(
            instance.module, instance.args, instance.kwargs, dynamic_shapes=_dynamic(given), strict=False
        )
    return program, watch


class _Reader:
    """Turn an exported program into plain data."""

    def __init__(self, instance: Instance, program: ExportedProgram, arguments: dict[str, Any]) -> None:
        self.instance = instance
        self.program = program
        self.arguments = arguments
        self.user_file = str(instance.user_module.__file__)

    def line(self, node: Any) -> int | None:
        found = [m for m in _FRAME.finditer(node.meta.get("stack_trace") or "") if m["file"] == self.user_file]
        return int(found[-1]["line"]) if found else None

    def module_path(self, node: Any) -> str:
        stack = node.meta.get("nn_module_stack") or {}
        paths = [entry[0] for entry in stack.values()]
        return str(paths[-1]) if paths else ""

    def argument(self, value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            meta = value.meta.get("val")
            if isinstance(meta, torch.Tensor):
                return {"name": value.name}
            if isinstance(meta, (int, float, bool)) or meta is None:
                return meta
            return str(meta)  # a symbolic size: shapes are read from the results
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        if isinstance(value, (bool, int, float, str, type(None))):
            return value
        return str(value)  # dtypes, devices, layouts

    def tensor(self, meta: torch.Tensor, line: int | None = None) -> dict[str, Any]:
        if meta.is_complex():
            raise Refusal(Fault.NOT_CAPTURED, "it computes with complex numbers", line=line)
        if any(depends_on_values(s) for s in meta.shape):
            raise Refusal(Fault.NOT_CAPTURED, "a tensor's size depends on values of another", line=line)
        return {
            "shape": [size_of(s) for s in meta.shape],
            "dtype": str(meta.dtype).removeprefix("torch."),
            "contiguous": bool(meta.is_contiguous()),
        }

    def inputs(self) -> list[dict[str, Any]]:
        nodes = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        names = self.instance.given()
        entries = []
        position = 0
        for spec in self.program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                source = names[position]
                position += 1
                if isinstance(spec.arg, ConstantArgument):
                    continue
                kind, grad = "argument", bool(self.arguments[source].requires_grad)
            elif spec.kind is InputKind.PARAMETER:
                source, kind = str(spec.target), "parameter"
                grad = self.instance.module.get_parameter(source).requires_grad
            elif spec.kind is InputKind.BUFFER:
                source, kind, grad = str(spec.target), "buffer", False
            else:
                raise Refusal(Fault.NOT_CAPTURED, f"forward creates a constant tensor ({spec.target})", line=None)
            meta = nodes[spec.arg.name].meta["val"]
            entries.append(
                {"name": spec.arg.name, "kind": kind, "source": source, "requires_grad": grad, **self.tensor(meta)}
            )
        return entries

    def operators(self) -> list[dict[str, Any]]:
        entries = []
        for node in self.program.graph.nodes:
            meta = node.meta.get("val")
            if node.op == "call_function" and depends_on_values(meta):
                reason = "forward makes a Python number of a tensor's value"
                raise Refusal(Fault.NOT_CAPTURED, reason, line=self.line(node))
            if node.op != "call_function" or not isinstance(meta, (torch.Tensor, tuple, list)):
                continue  # sizes and assertions on metadata
            first = meta if isinstance(meta, torch.Tensor) else meta[0]
            entries.append(
                {
                    "name": node.name,
                    "target": "getitem" if "getitem" in str(node.target) else str(node.target),
                    "args": [self.argument(a) for a in node.args],
                    "kwargs": {k: self.argument(v) for k, v in node.kwargs.items()},
                    "line": self.line(node),
                    "module": self.module_path(node),
                    **self.tensor(first, self.line(node)),
                }
            )
        return entries

    def outputs(self) -> tuple[list[str], str]:
        for spec in self.program.graph_signature.output_specs:
            if spec.kind is not OutputKind.USER_OUTPUT:
                what = str(spec.target)
                raise Refusal(Fault.NOT_CAPTURED, f"forward changes {what} in place", line=None)
        node = next(n for n in self.program.graph.nodes if n.op == "output")
        values = node.args[0]
        out_spec = self.program.call_spec.out_spec
        assert out_spec is not None
        shape = pytree.tree_unflatten(list(range(len(values))), out_spec)
        structure = {int: "tensor", tuple: "tuple", list: "list"}.get(type(shape))
        flat = structure == "tensor" or (structure and all(isinstance(item, int) for item in shape))
        if not flat or not all(isinstance(v, torch.fx.Node) for v in values):
            raise Refusal(
                Fault.NOT_CAPTURED, "forward returns something else than a tensor or a tuple of tensors", line=None
            )
        return [v.name for v in values], str(structure)

    def symbols(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for entry in inputs:
            if entry["kind"] != "argument":
                continue
            actual = self.arguments[entry["source"]].shape
            for dim, size in enumerate(entry["shape"]):
                if isinstance(size, str) and size.isidentifier() and size not in found:
                    found[size] = {"name": size, "input": entry["name"], "dim": dim, "hint": int(actual[dim])}
        for size in (size for entry in inputs for size in entry["shape"] if isinstance(size, str)):
            require_known(size, found)
        return list(found.values())


def _refuse(instance: Instance, error: BaseException) -> Refusal:
    """Tell a forward that fails from one that cannot be captured."""
    path = str(instance.user_module.__file__)
    try:
        with torch.no_grad():
            instance.module(*instance.args, **instance.kwargs)
    except (Exception, SystemExit) as own:  # noqa: BLE001 - the user's code may raise anything
        return Refusal(Fault.FORWARD_FAILED, describe_error(own, path))
    if type(error).__name__ == "GuardOnDataDependentSymNode":
        return Refusal(
            Fault.NOT_CAPTURED, "what forward does depends on values of tensors", line=error_line(error, path)
        )
    return Refusal(Fault.NOT_CAPTURED, f"torch.export cannot follow it: {describe_error(error, path)}", line=None)


def _refuse_watched(watch: Watch) -> None:
    for path, line in watch.written.items():
        raise Refusal(Fault.NOT_CAPTURED, f"forward assigns {path}", line=line)
    for path, (kind, line) in watch.unwatchable.items():
        reason = f"forward reads {path} (a {kind}), which could change without being noticed"
        raise Refusal(Fault.NOT_CAPTURED, reason, line=line)


def export_graph(instance: Instance) -> dict[str, Any]:
    """Give the open module's graph as plain data, in the form of ``model.task.Graph``.

    Raises:
        Refusal: The module fails on its workload or cannot be captured.
    """
    arguments = _bind(instance)
    _refuse_hooks(instance)
    try:
        program, watch = _export(instance, arguments)
        decomposed = program.run_decompositions(_decompositions())
    except (Exception, SystemExit) as error:
        raise _refuse(instance, error) from error
    globals_read = watch.globals_read()
    _refuse_watched(watch)
    reader = _Reader(instance, decomposed, arguments)
    inputs = reader.inputs()
    outputs, structure = reader.outputs()
    operators = reader.operators()
    if not operators:
        raise Refusal(Fault.NOT_CAPTURED, "forward computes nothing", line=None)
    symbols = reader.symbols(inputs)
    relations = relations_of(program, symbols)
    relations += larger_than_one(instance, program, inputs, symbols, relations)
    return {
        "inputs": inputs,
        "operators": operators,
        "outputs": outputs,
        "output_structure": structure,
        "symbols": symbols,
        "parameters": _parameters(instance, arguments),
        "reads": _entries(watch.attributes, instance),
        "submodules": [
            [path, _relative(qualified_name(type(m)), instance)] for path, m in instance.module.named_modules() if path
        ],
        "globals_read": _entries(globals_read, instance),
        "size_relations": relations,
        "texts": list(map(list, watch.texts().items())),
        "exact_layout": watch.asks_for_layout(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
    }


def _entries(reads: dict[str, tuple[str, Any]], instance: Instance) -> list[dict[str, Any]]:
    return [
        {"path": path, "value": _relative(value, instance) if how == "name" else value, "how": how}
        for path, (how, value) in reads.items()
    ]


def _relative(name: str, instance: Instance) -> str:
    """Give names from the user's file with a leading dot: the file may be run as ``__main__`` later."""
    own = f"{instance.user_module.__name__}."
    return f".{name.removeprefix(own)}" if name.startswith(own) else name


def describe_inputs(instance: Instance) -> str:
    """Give the inputs in words: ``x=float32[8192, 4096]``."""
    arguments = _bind(instance)

    def show(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return repr(value)

    return ", ".join(f"{name}={show(value)}" for name, value in arguments.items())


def input_tensors(instance: Instance) -> list[torch.Tensor]:
    """Give the tensors among the inputs, in order."""
    leaves = pytree.tree_leaves((instance.args, instance.kwargs))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
