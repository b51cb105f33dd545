"""The open module as a graph: ``torch.export`` with decompositions, every operator with its source line."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree as pytree

from adaexplore.worker.loading import Instance, Refusal, describe_error
from adaexplore.worker.messages import Fault
from adaexplore.worker.watching import Watch, qualified_name, watching

_KEPT_WHOLE = ("linear", "matmul", "layer_norm", "native_layer_norm", "rms_norm", "silu", "gelu")
"""Operators that a kernel family takes as they are; everything else is decomposed to core ATen."""
_DECOMPOSED_TOO = ("_softmax", "_log_softmax", "logsumexp", "mish", "softplus", "elu", "celu", "hardswish",
                   "hardsigmoid", "addcmul", "addcdiv", "lerp", "linalg_vector_norm", "std", "std_mean",
                   "_fused_rms_norm", "logaddexp", "square")  # fmt: skip
_SIZE_EXPRESSION = re.compile(r"[\w\s*+\-/()]+")
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
        if str(operator).split("::")[-1].split(".")[1 if "::" not in str(operator) else 0] in _KEPT_WHOLE:
            del table[operator]
    return table


def _bind(instance: Instance) -> dict[str, Any]:
    """Give the arguments of the call by name, those left to their defaults included, in forward's order."""
    signature = inspect.signature(instance.module.forward)
    bound = signature.bind(*instance.args, **instance.kwargs)
    bound.apply_defaults()
    kinds = {p.name: p.kind for p in signature.parameters.values()}
    for name, value in bound.arguments.items():
        if kinds[name] in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise Refusal(Fault.NOT_CAPTURED, f"forward takes *{name}; give its arguments names", line=None)
        if not isinstance(value, (torch.Tensor, bool, int, float, str, type(None))):
            kind = type(value).__name__
            raise Refusal(
                Fault.NOT_CAPTURED, f"argument {name} of forward is a {kind}; tensors and plain values are supported",
                line=None,
            )  # fmt: skip
    return dict(bound.arguments)


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
                "default": None if parameter.default is inspect.Parameter.empty else repr(parameter.default),
                "keyword_only": parameter.kind is inspect.Parameter.KEYWORD_ONLY,
            }
        )
    return entries


def _given(instance: Instance) -> list[str]:
    """Give the names of the arguments that the call itself passes."""
    return list(inspect.signature(instance.module.forward).bind(*instance.args, **instance.kwargs).arguments)


def _dynamic(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {dim: Dim.AUTO for dim in range(value.dim())} if isinstance(value, torch.Tensor) else None
        for name, value in arguments.items()
    }


def _export(instance: Instance, arguments: dict[str, Any]) -> tuple[ExportedProgram, Watch]:
    with warnings.catch_warnings(), watching(instance.module, instance.user_module) as watch:
        warnings.simplefilter("ignore")
        given = {name: arguments[name] for name in _given(instance)}
        program = torch.export.export(
            instance.module, instance.args, instance.kwargs, dynamic_shapes=_dynamic(given), strict=False
        )
    return program, watch


def _python(expression: Any) -> str:
    from torch.utils._sympy.printers import PythonPrinter

    return str(PythonPrinter().doprint(expression))


def _size(value: Any) -> int | str:
    if isinstance(value, int):
        return value
    text = _python(value.node.expr)
    if text.isdigit():
        return int(text)
    if not _SIZE_EXPRESSION.fullmatch(text):
        raise Refusal(Fault.NOT_CAPTURED, f"a size depends on the inputs as {text}", line=None)
    return text


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

    def tensor(self, meta: torch.Tensor) -> dict[str, Any]:
        return {
            "shape": [_size(s) for s in meta.shape],
            "dtype": str(meta.dtype).removeprefix("torch."),
            "contiguous": bool(meta.is_contiguous()),
        }

    def inputs(self) -> list[dict[str, Any]]:
        nodes = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        names = _given(self.instance)
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
                    **self.tensor(first),
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
        return list(found.values())


def _relations(program: ExportedProgram) -> list[str]:
    """Give the relations between sizes that the export relied on, beyond what shapes show."""
    placeholders = (n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder")
    tensor = next((v for v in placeholders if isinstance(v, torch.Tensor) and hasattr(v, "fake_mode")), None)
    env = getattr(getattr(tensor, "fake_mode", None), "shape_env", None)
    if env is None:
        return []
    relations = []
    for guard in env.guards:
        expression = env.simplify(guard.expr)
        if str(expression) not in ("True", "true"):
            relations.append(_python(expression))
    return sorted(set(relations))


def _refuse(instance: Instance, error: Exception) -> Refusal:
    """Tell a forward that fails from one that cannot be captured."""
    path = str(instance.user_module.__file__)
    try:
        with torch.no_grad():
            instance.module(*instance.args, **instance.kwargs)
    except Exception as own:  # noqa: BLE001 - the user's code may raise anything
        return Refusal(Fault.FORWARD_FAILED, describe_error(own, path))
    return Refusal(Fault.NOT_CAPTURED, f"torch.export cannot follow it: {describe_error(error, path)}", line=None)


def export_graph(instance: Instance) -> dict[str, Any]:
    """Give the open module's graph as plain data, in the form of ``model.task.Graph``.

    Raises:
        Refusal: The module fails on its workload or cannot be captured.
    """
    arguments = _bind(instance)
    try:
        program, watch = _export(instance, arguments)
        relations = _relations(program)
        program = program.run_decompositions(_decompositions())
    except Exception as error:
        raise _refuse(instance, error) from error
    if watch.unwatchable:
        path, kind = next(iter(watch.unwatchable.items()))
        raise Refusal(
            Fault.NOT_CAPTURED, f"forward reads self.{path} (a {kind}), which could change without being noticed",
            line=None,
        )  # fmt: skip
    reader = _Reader(instance, program, arguments)
    inputs = reader.inputs()
    outputs, structure = reader.outputs()
    symbols = reader.symbols(inputs)
    known = {s["name"] for s in symbols}
    return {
        "inputs": inputs,
        "operators": reader.operators(),
        "outputs": outputs,
        "output_structure": structure,
        "symbols": symbols,
        "parameters": _parameters(instance, arguments),
        "reads": [{"path": path, "value": value, "how": how} for path, (how, value) in watch.attributes.items()],
        "submodules": [[path, qualified_name(type(m))] for path, m in instance.module.named_modules() if path],
        "globals_read": [{"path": name, "value": value} for name, value in watch.constants().items()],
        # A relation may be about a stride: layouts are the guard's business.
        "size_relations": [r for r in relations if known.issuperset(_SYMBOL.findall(r))],
    }


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
