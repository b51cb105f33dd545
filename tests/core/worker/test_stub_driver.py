"""Targets by name, and what ptxas says of a kernel."""

import types

import pytest

pytest.importorskip("triton")

from adaexplore.worker import stub_driver
from adaexplore.worker.stub_driver import parse_target, registers_and_spills

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first_kernel' for 'sm_90a'
ptxas info    : Function properties for first_kernel
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes smem
ptxas info    : Compile time = 11.2 ms
some noise of the user's: Used 7 registers
ptxas info    : Compiling entry function 'second_kernel' for 'sm_90a'
ptxas info    : Function properties for second_kernel
    128 bytes stack frame, 96 bytes spill stores, 132 bytes spill loads
ptxas info    : Used 255 registers
"""


@pytest.mark.parametrize("arch", [80, 86, 89, 90, 100, 120])
def test_known_targets(arch: int) -> None:
    target = parse_target(f"cuda:{arch}")
    assert (target.backend, target.arch, target.warp_size) == ("cuda", arch, 32)


@pytest.mark.parametrize(
    "text", ["", "cuda", "cuda:", "cuda:9", "cuda:ninety", "cuda:75", "hip:gfx942", "cuda:90:1", "90"]
)
def test_other_targets_are_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match="known are cuda:80, cuda:86"):
        parse_target(text)


def test_registers_and_spills_from_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub_driver, "_PTXAS_LOGS", {})
    stub_driver._read_log(LOG)

    def compiled(name: str) -> types.SimpleNamespace:
        return types.SimpleNamespace(metadata=types.SimpleNamespace(name=name), asm={})

    assert registers_and_spills(compiled("first_kernel")) == (40, 0)
    assert registers_and_spills(compiled("second_kernel")) == (255, 228)
    assert registers_and_spills(compiled("third_kernel")) == (None, None)


def test_the_real_driver_comes_back() -> None:
    from triton.runtime.driver import driver

    slot = "_active" if hasattr(driver, "_active") else "active"
    before = getattr(driver, slot)
    seen = []

    def fail() -> None:
        with stub_driver.compiling_for("cuda:90"):
            seen.append(driver.active.get_current_target().arch)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [90]
    assert getattr(driver, slot) is before
