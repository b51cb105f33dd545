"""Run a candidate and compare it with float64, eager's errors being the yardstick.

The candidate runs first, while nothing of the reference's result exists in this process. Its memory is poisoned and
guarded; its inputs must stay as they were; a second call must agree and must not return the first call's memory; and
a call with other values at the same addresses must see the new ones.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from adaexplore.worker.candidates import LoadedCandidate, candidate_fault, device_is_lost
from adaexplore.worker.errors_against_float64 import Verdict, judge
from adaexplore.worker.loading import Instance, Refusal
from adaexplore.worker.messages import Fault
from adaexplore.worker.poison import PoisonedMemory, is_poison
from adaexplore.worker.trials import Trial, change_weights, draw_inputs, make_trials

_MOST_SECONDS_INTERPRETED = 40.0
"""After these, no further trial is begun; the result says how many were made."""
_FEWEST_TRIALS = 3
_ILL_CONDITIONED = 0.5
"""Relative error of eager from which a trial says nothing: zeros would pass it."""


_Reference = tuple[list[torch.Tensor], list[torch.Tensor]]


@dataclass(slots=True)
class _Tally:
    trials: int = 0
    relative: float = 0.0
    largest: float = 0.0
    eager_relative: float = 0.0
    eager_largest: float = 0.0
    notes: list[str] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.relative = max(self.relative, verdict.candidate.relative)
        self.largest = max(self.largest, verdict.candidate.largest)
        self.eager_relative = max(self.eager_relative, verdict.eager.relative)
        self.eager_largest = max(self.eager_largest, verdict.eager.largest)


def _wrong(trial: str, reason: str) -> Refusal:
    return Refusal(Fault.CANDIDATE, f"inputs {trial!r}: {reason}", status="incorrect")


class Comparison:
    """One candidate's trials."""

    def __init__(
        self, candidate: LoadedCandidate, instance: Instance, graph: dict[str, Any], *, factor: float, interpreted: bool
    ) -> None:
        self.candidate = candidate
        self.instance = instance
        self.graph = graph
        self.factor = factor
        self.interpreted = interpreted
        self.inputs = [e for e in graph["inputs"] if e["kind"] == "argument"]
        self.literals = {p["name"]: p["value"] for p in graph["parameters"] if not p["is_tensor"]}
        device = next(iter(self.instance.module.parameters()), torch.empty(0)).device
        if self.inputs:
            device = self.instance.arguments()[self.inputs[0]["source"]].device
        self.device = device
        self.generator = torch.Generator(device=device).manual_seed(1)
        self.tally = _Tally()
        self.drawn: dict[str, torch.Tensor] = {}

    def run(self) -> dict[str, Any]:
        """Make all trials.

        Raises:
            Refusal: At the first trial that fails.
        """
        saved = copy.deepcopy(self.instance.module.state_dict())
        started = time.monotonic()
        relations = [*self.graph["size_relations"], *self.graph["conditions"]]
        is_lost = False
        try:
            for trial in make_trials(self.graph["symbols"], relations, small=self.interpreted):
                spent = time.monotonic() - started
                if self.interpreted and self.tally.trials >= _FEWEST_TRIALS and spent > _MOST_SECONDS_INTERPRETED:
                    break
                if trial.new_weights:
                    change_weights(self.instance.module, self.generator)
                self._direct(trial)
            self._replacement()
        except Exception as error:
            is_lost = device_is_lost(error)
            raise
        finally:
            if not is_lost:
                self.instance.module.load_state_dict(saved)
        return {
            "how": "interpreter" if self.interpreted else "gpu",
            "trials": self.tally.trials,
            "relative_error": self.tally.relative,
            "max_error": self.tally.largest,
            "eager_relative_error": self.tally.eager_relative,
            "eager_max_error": self.tally.eager_largest,
            "note": "; ".join(dict.fromkeys(self.tally.notes)),
        }

    # -- the kernels themselves

    def _call(self, trial: str, function: Any, arguments: dict[str, Any]) -> list[torch.Tensor]:
        try:
            with torch.no_grad():
                result = function(arguments)
                if self.device.type == "cuda":
                    torch.cuda.synchronize()
        except Exception as error:
            fault = candidate_fault(error, "runtime_error")
            raise Refusal(Fault.CANDIDATE, f"inputs {trial!r}: {fault}", **fault.details) from error
        return self._flat(trial, result)

    def _flat(self, trial: str, result: Any) -> list[torch.Tensor]:
        structure = {"tensor": torch.Tensor, "tuple": tuple, "list": list}[self.graph["output_structure"]]
        if type(result) is not structure and not (structure is torch.Tensor and isinstance(result, torch.Tensor)):
            raise _wrong(trial, f"it returns a {type(result).__name__}, the module a {structure.__name__}")
        return [result] if isinstance(result, torch.Tensor) else list(result)

    def _direct(self, trial: Trial) -> None:
        drawn = self._draw(trial)
        arguments = {**drawn, **self.literals}
        before = {name: value.clone() for name, value in drawn.items()}
        module = self.instance.module
        kernels = getattr(self.candidate.module, self.candidate.function)
        memory = PoisonedMemory()

        def poisoned(a: dict[str, Any]) -> Any:
            with memory:
                return kernels(module, **a)

        first = self._call(trial.name, poisoned, arguments)
        if memory.writes_outside():
            raise _wrong(trial.name, "it writes outside its output")
        kept = [out.clone() for out in first]
        second = self._call(trial.name, lambda a: kernels(module, **a), arguments)
        for name, value in drawn.items():
            if not _identical(value, before[name]):
                raise _wrong(trial.name, f"it changes its input {name}")
        for position, (one, again, later) in enumerate(zip(kept, first, second, strict=True)):
            if not _identical(one, again):
                raise _wrong(trial.name, f"a second call changes the first call's output {position}")
            if not _identical(one, later):
                raise _wrong(trial.name, _how_calls_differ(position, one, later))
        self._check(trial.name, kept, self._reference(before))
        self.tally.trials += 1

    def _draw(self, trial: Trial) -> dict[str, torch.Tensor]:
        drawn = draw_inputs(self.instance, trial, self.inputs, self.generator)
        if trial.same_memory:
            for name, value in drawn.items():
                self.drawn[name].data.copy_(value)  # .data: unseen by autograd's version counter, as in some user code
            return self.drawn
        self.drawn = drawn
        return drawn

    def _reference(self, arguments: dict[str, torch.Tensor]) -> _Reference:
        """Give eager's outputs and float64's."""
        module = self.instance.module
        with torch.no_grad():
            eager = self._flat("reference", module(**{n: _copied(v) for n, v in arguments.items()}, **self.literals))
            try:
                double = copy.deepcopy(module).double()
                wide = {n: v.double() if v.is_floating_point() else v.clone() for n, v in arguments.items()}
                exact = self._flat("reference", double(**wide, **self.literals))
            except Exception as error:  # noqa: BLE001 - the user's code may refuse float64 in any way
                name = type(error).__name__
                self.tally.notes.append(f"no float64 reference ({name}): compared with eager, within the floors")
                exact = [e.double() if e.is_floating_point() else e for e in eager]
        return eager, exact

    def _check(self, trial: str, results: list[torch.Tensor], reference: _Reference, *, tally: bool = True) -> None:
        eager, exact = reference
        if len(results) != len(eager):
            raise _wrong(trial, f"it returns {len(results)} outputs, the module {len(eager)}")
        for position, (z, b, y) in enumerate(zip(results, eager, exact, strict=True)):
            where = f"output {position}: " if len(results) > 1 else ""
            for what, own, wanted in (("shape", tuple(z.shape), tuple(b.shape)), ("dtype", z.dtype, b.dtype),
                                      ("device", z.device, b.device)):  # fmt: skip
                if own != wanted:
                    raise _wrong(trial, f"{where}{what} {own} instead of {wanted}")
            if not b.is_floating_point():
                if not torch.equal(z, b):
                    raise _wrong(trial, f"{where}{int((z != b).sum())} of {b.numel()} values differ")
                continue
            verdict = judge(z, b, y, self.factor)
            if verdict.fault:
                raise _wrong(trial, where + verdict.fault)
            if tally:
                self.tally.add(verdict)
                if verdict.eager.relative > _ILL_CONDITIONED:
                    self.tally.notes.append(f"inputs {trial!r} tell little: eager itself is off by half or more")

    # -- the decorated class

    def _replacement(self) -> None:
        """The guard must admit the workload, and turn nothing else into another answer; gradients must agree."""
        target = self.candidate.replaced(self.instance)
        trial = next(make_trials(self.graph["symbols"], self.graph["size_relations"], small=self.interpreted))
        drawn = draw_inputs(self.instance, trial, self.inputs, self.generator)
        before = self.candidate.launches.count
        self._compare_modules("through the decorator", target, drawn)
        if self.candidate.launches.count == before:
            raise _wrong("through the decorator", "the guard turns the workload away: no kernel was launched")
        strided = {n: _strided(v) for n, v in drawn.items()}
        self._compare_modules("non-contiguous", target, strided)
        self._compare_modules("gaps between rows", target, {n: _with_gaps(v) for n, v in drawn.items()})
        self._compare_gradients(target, drawn)

    def _compare_modules(self, trial: str, target: nn.Module, drawn: dict[str, torch.Tensor]) -> None:
        results = self._call(trial, lambda a: target(**a), {**drawn, **self.literals})
        reference = self._reference(drawn)
        self._check(
            trial, results, reference, tally=False
        )  # the original may have run: these are not the kernel's errors
        for z, b in zip(results, reference[0], strict=True):
            if _real_strides(z) != _real_strides(b):
                raise _wrong(trial, f"strides {z.stride()} instead of {b.stride()}")
        self.tally.trials += 1

    def _compare_gradients(self, target: nn.Module, drawn: dict[str, torch.Tensor]) -> None:
        ours = self._gradients(target, drawn)
        eager = self._gradients(self.instance.module, drawn)
        if eager is None:
            return
        if ours is None:
            raise _wrong("gradients", "the result does not require grad")
        double = copy.deepcopy(self.instance.module).double()
        wide = {n: v.double() if v.is_floating_point() else v for n, v in drawn.items()}
        try:
            exact = self._gradients(double, wide)
        except Exception:  # noqa: BLE001 - as for the reference itself
            exact = {n: None if g is None else g.double() for n, g in eager.items()}
        assert exact is not None
        for name, grad in eager.items():
            own, wanted = ours[name], exact[name]
            if (own is None) != (grad is None):
                raise _wrong("gradients", f"{name} has {'no' if own is None else 'a'} gradient")
            if own is None or grad is None or wanted is None:
                continue
            verdict = judge(own, grad, wanted, self.factor)
            if verdict.fault:
                raise _wrong("gradients", f"{name}: {verdict.fault}")
        self.tally.trials += 1

    def _gradients(self, module: nn.Module, drawn: dict[str, torch.Tensor]) -> dict[str, torch.Tensor | None] | None:
        """Give the gradients of a fixed weighted sum of the outputs, by leaf; None where there are none."""
        leaves = {n: v.detach().clone().requires_grad_(v.is_floating_point()) for n, v in drawn.items()}
        module.zero_grad(set_to_none=True)
        try:
            outputs = self._flat("gradients", module(**leaves, **self.literals))
            outputs = [o for o in outputs if o.is_floating_point() and o.requires_grad]
            if not outputs:
                return None
            generator = torch.Generator(device=self.device).manual_seed(2)
            weights = [torch.randn(o.shape, generator=generator, device=self.device).to(o.dtype) for o in outputs]
            torch.autograd.backward(outputs, weights)
        except Refusal:
            raise
        except Exception as error:
            if module is not self.instance.module:
                fault = candidate_fault(error, "incorrect")
                raise Refusal(Fault.CANDIDATE, f"inputs 'gradients': {fault}", **fault.details) from error
            return None
        found = {n: v.grad for n, v in leaves.items() if v.is_floating_point()}
        found |= {f"weight {n}": p.grad for n, p in module.named_parameters()}
        module.zero_grad(set_to_none=True)
        return found


def _real_strides(tensor: torch.Tensor) -> list[int]:
    """Give the strides that mean something: those of dimensions longer than one."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def _identical(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit for bit, NaN included."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.is_floating_point():
        return bool(((a == b) | (a.isnan() & b.isnan())).all())
    return torch.equal(a, b)


def _how_calls_differ(position: int, first: torch.Tensor, later: torch.Tensor) -> str:
    """Tell memory that was never written, where the first call's poison is still seen, from other differences."""
    if first.shape == later.shape and first.dtype == later.dtype:
        differs = ~((first == later) | (first.isnan() & later.isnan()))
        if bool(is_poison(first)[differs].all()):
            return f"{int(differs.sum())} values of output {position} are never written"
    return f"two calls differ in output {position}"


def _copied(value: torch.Tensor) -> torch.Tensor:
    """Give a copy with the same strides: what forward returns unchanged must compare equal in layout, too."""
    return value.new_empty_strided(value.shape, value.stride()).copy_(value)


def _with_gaps(value: torch.Tensor) -> torch.Tensor:
    """Give a matrix's values with memory of others between its rows, as a slice of a wider one has; others as is."""
    if value.dim() != 2:
        return value
    wide = torch.full_like(value, 3).repeat(1, 2)
    wide[:, : value.shape[1]] = value
    return wide[:, : value.shape[1]]


def _strided(value: torch.Tensor) -> torch.Tensor:
    """Give the same values in another layout: every second element of twice the memory, or a transpose's."""
    if value.dim() == 0:
        return value
    if value.dim() >= 2 and value.is_contiguous():
        return value.transpose(0, -1).contiguous().transpose(0, -1)
    wide = value.new_empty((*value.shape[:-1], value.shape[-1] * 2))
    wide[..., ::2] = value
    return wide[..., ::2]


def tree_to(instance: Instance, dtype: torch.dtype, source: torch.dtype) -> Instance:
    """Give the instance with every tensor of ``source`` dtype in ``dtype`` instead."""

    def move(value: Any) -> Any:
        return value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype is source else value

    for module in instance.module.modules():
        for name, tensor in list(module._parameters.items()):
            if tensor is not None and tensor.dtype is source:
                module._parameters[name] = nn.Parameter(tensor.detach().to(dtype), tensor.requires_grad)
        for name, tensor in list(module._buffers.items()):
            if tensor is not None:
                module._buffers[name] = move(tensor)
    args, kwargs = pytree.tree_map(move, (instance.args, instance.kwargs))
    return Instance(instance.module, tuple(args), dict(kwargs), instance.user_module)
