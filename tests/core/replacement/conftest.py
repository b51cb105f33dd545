from collections.abc import Callable

import pytest

from adaexplore.replacement.receipt import Receipt, Section, function_name

collect_ignore_glob = ["__snapshots__*"]  # Python files whose names begin with test_

MakeReceipt = Callable[..., Receipt]
MakeSection = Callable[..., Section]

CODE = """\
@triton.jit
def _{function}_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def {function}(cls):
    cls.replaced_by = "{function}"
    return cls
"""


@pytest.fixture
def make_receipt() -> MakeReceipt:
    def make(**changes: object) -> Receipt:
        values: dict[str, object] = {
            "source_hash": "0123456789abcdef",
            "task_id": "task-1",
            "candidate_id": "fedcba9876543210",
            "run_id": "run-1",
            "date": "2026-03-01",
            "policy": "strict",
            "workload": "x=bfloat16[8192, 4096]: shapes in the # adaexplore: comment, line 7",
            "torch": "2.11.0",
            "triton": "3.6.0",
            "how": "gpu",
            "relative_error": 1.5e-7,
            "max_error": 2.25e-6,
            "eager_relative_error": 1e-7,
            "eager_max_error": 3e-6,
            "gpu": "NVIDIA H200",
            "speedup": 2.3149,
            "speedup_over_compile": 1.2,
        }
        return Receipt(**(values | changes))  # type: ignore[arg-type]

    return make


@pytest.fixture
def make_section(make_receipt: MakeReceipt) -> MakeSection:
    def make(class_name: str = "RMSNorm", **changes: object) -> Section:
        function = function_name(class_name)
        return Section(class_name, function, CODE.replace("{function}", function), make_receipt(**changes))

    return make
