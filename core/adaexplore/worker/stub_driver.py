"""A Triton driver for no device: launches compile for a named target, and nothing runs.

Made for Triton 3.2 and newer, on any torch. What a real driver would refuse at load time (too much shared memory) is
refused here, from the target's published limits.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from adaexplore.worker.targets import SHARED_MEMORY_BYTES, architecture

_WARP_SIZE = 32


def parse_target(text: str) -> GPUTarget:
    """Give the target for ``cuda:90``.

    Raises:
        ValueError: It is no such thing, or no CUDA architecture this file knows.
    """
    return GPUTarget("cuda", architecture(text), _WARP_SIZE)


class _Utils:
    def __init__(self, arch: int) -> None:
        self._shared = SHARED_MEMORY_BYTES[arch]

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": self._shared, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        # (module, function, registers, spills, most threads); with no module nothing is unloaded later
        recent = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 4)
        return (None, object(), 0, 0, 1024) if recent else (None, object(), 0, 0)

    def unload_module(self, module: Any) -> None:
        """Nothing was loaded."""


class StubDriver(DriverBase):
    """Answers what Triton asks before a launch, for a target instead of a device."""

    def __init__(self, target: GPUTarget) -> None:
        self.target = target
        self.utils = _Utils(target.arch)
        self.launcher_cls = _Launcher

    @classmethod
    def is_active(cls) -> bool:
        """Always: it is chosen explicitly."""
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Give the type unchanged; no launcher is compiled."""
        return ty

    def get_current_target(self) -> GPUTarget:
        """Give the target that was named."""
        return self.target

    def get_active_torch_device(self) -> torch.device:
        """Give the device of the tensors that stand for the GPU's."""
        return torch.device("cpu")

    def get_current_device(self) -> int:
        """Give the only device there is."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int = 0) -> int:
        """Give the default stream."""
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Give (major, minor)."""
        return divmod(self.target.arch, 10)

    def get_benchmarker(self) -> Any:
        """Autotuning has no meaning here: every configuration is as good."""
        return lambda kernel_call, **kwargs: (kernel_call(), [1.0, 1.0, 1.0])[1]


class _Launcher:
    def __init__(self, src: Any, metadata: Any) -> None:
        """Nothing to build: nothing is launched."""

    def __call__(self, *args: Any) -> None:
        """Launch nothing."""


_PTXAS_LOGS: dict[str, tuple[int | None, int | None]] = {}
"""Registers and spilled bytes by kernel name, of the present candidate."""


@contextlib.contextmanager
def compiling_for(target: str) -> Iterator[None]:
    """Let every launch in the block compile for ``target`` instead of running."""
    from triton.runtime.driver import driver

    slot = "_active" if hasattr(driver, "_active") else "active"
    previous = getattr(driver, slot)
    driver.set_active(StubDriver(parse_target(target)))
    log = io.StringIO()
    _PTXAS_LOGS.clear()
    try:
        with _ptxas_log(), contextlib.redirect_stdout(log):
            yield
    finally:
        setattr(driver, slot, previous)
        _read_log(log.getvalue())


@contextlib.contextmanager
def _ptxas_log() -> Iterator[None]:
    """Let Triton print what ``ptxas -v`` says, where it can (3.5 and newer)."""
    nvidia = getattr(getattr(triton, "knobs", None), "nvidia", None)
    if nvidia is None or not hasattr(nvidia, "dump_ptxas_log"):
        yield
        return
    before = nvidia.dump_ptxas_log
    nvidia.dump_ptxas_log = True
    try:
        yield
    finally:
        nvidia.dump_ptxas_log = before


def _read_log(text: str) -> None:
    for part in re.split(r"(?=ptxas info\s+: Compiling entry function)", text):
        name = re.search(r"Compiling entry function '(\w+)'", part)
        registers = re.search(r"Used (\d+) registers", part)
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        if name and registers:
            spilled = int(spills[1]) + int(spills[2]) if spills else None
            _PTXAS_LOGS[name[1]] = (int(registers[1]), spilled)


def registers_and_spills(compiled: Any) -> tuple[int | None, int | None]:
    """Give registers a thread and spilled bytes of a kernel; spills are unknown where Triton's cache had the kernel."""
    name = compiled.metadata.name
    if name in _PTXAS_LOGS:
        return _PTXAS_LOGS[name]
    tool = getattr(getattr(getattr(triton, "knobs", None), "nvidia", None), "cuobjdump", None)
    cubin = compiled.asm.get("cubin")
    if tool is None or cubin is None:
        return None, None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool.path, "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout
    registers = re.search(r"REG:(\d+)", text)
    return (int(registers[1]) if registers else None), None
