"""What is written reads as if a good engineer wrote it; see the files beside this one."""

import ast
from typing import Any, ClassVar

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from .stored import stored_task, write


class PythonFile(SingleFileSnapshotExtension):
    """One Python file a snapshot."""

    file_extension: ClassVar[str] = "py"
    _write_mode = WriteMode.TEXT


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "pointwise": ("broadcast_chain", {}),
    "pointwise_parameter": ("gelu_bias", {"block": 256}),
    "rows_3d": ("rms_norm_residual", {}),
    "rows_2d_one_at_a_time": ("kernelbench_style", {"rows_per_program": 1, "keep_inputs": 0}),
    "rows_library_norm": ("layer_norm_residual", {"rows_per_program": 1}),
    "rows_softmax": ("softmax_temperature", {}),
    "rows_partial_mask": ("masked_softmax", {}),
    "rows_several_results": ("statistics", {"rows_per_program": 1}),
    "rows_loop": ("long_rms_norm", {}),
    "product_pointers": ("linear_silu", {"structure": "pointers ieee"}),
    "product_descriptors_persistent": (
        "linear_silu", {"structure": "descriptors tf32x3", "persistent": 1, "whole_waves": 1},
    ),
    "product_library": ("linear_silu", {"library": True}),
    "two_products": ("layer_norm_mlp", {"structure": "descriptors ieee"}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_source(case: str, snapshot: SnapshotAssertion) -> None:
    name, options = CASES[case]
    source = write(stored_task(name), **options).source
    ast.parse(source)
    assert source == snapshot(extension_class=PythonFile)


@pytest.mark.parametrize("case", CASES)
def test_lines_are_short_and_end_cleanly(case: str) -> None:
    name, options = CASES[case]
    source = write(stored_task(name), **options).source
    assert source.endswith("\n")
    assert not source.endswith("\n\n")
    assert [line for line in source.splitlines() if len(line) > 120 or line != line.rstrip()] == []
