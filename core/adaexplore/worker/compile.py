"""Compile what a candidate launches: for the device at hand, or for a named target without one."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from adaexplore.worker.candidates import LoadedCandidate, candidate_fault
from adaexplore.worker.loading import Instance, Refusal
from adaexplore.worker.messages import Fault
from adaexplore.worker.stub_driver import compiling_for, registers_and_spills


def compile_candidate(candidate: LoadedCandidate, instance: Instance, target: str | None) -> dict[str, Any]:
    """Launch once on the workload's inputs (with a target: compile only), and give each kernel's resources.

    Raises:
        Refusal: It does not compile or does not launch.
    """
    candidate.launches.compiled.clear()
    candidate.launches.count = 0
    where = compiling_for(target) if target else contextlib.nullcontext()
    try:
        with where, torch.no_grad():
            candidate.call(instance.module, instance.args, instance.kwargs)
            if target is None:
                torch.cuda.synchronize()
    except Exception as error:
        raise candidate_fault(error, "runtime_error") from error
    if not candidate.launches.count:
        raise Refusal(Fault.CANDIDATE, "it launches no kernel", status="rejected")
    kernels = [_resources(name, compiled, target) for name, compiled in candidate.launches.compiled.items()]
    return {"target": target or device_target(), "kernels": kernels}


def device_target() -> str:
    """Give the present device as a target: ``cuda:90``."""
    major, minor = torch.cuda.get_device_capability()
    return f"cuda:{major}{minor}"


def _resources(name: str, compiled: Any, target: str | None) -> dict[str, Any]:
    metadata = compiled.metadata
    if target:
        registers, spills = registers_and_spills(compiled)
    else:
        registers, spills = getattr(compiled, "n_regs", None), getattr(compiled, "n_spills", None)
    return {
        "name": name,
        "registers": registers,
        "spills": spills,
        "shared": int(metadata.shared),
        "num_warps": int(metadata.num_warps),
        "num_stages": int(metadata.num_stages),
    }
