"""A receipt survives its comment block, tells its age, and says the same to people."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.model.identity import source_hash
from adaexplore.replacement.receipt import (
    Receipt,
    function_name,
    is_stale,
    parse_receipt,
    render_receipt,
    summarize,
)

FLOATS = st.floats(allow_nan=False)


@given(
    st.builds(
        Receipt,
        *[st.text()] * 10,
        *[FLOATS] * 4,
        gpu=st.text(min_size=1),
        speedup=st.none() | FLOATS,
        speedup_over_compile=st.none() | FLOATS,
    )
)
def test_what_is_rendered_is_read_back(receipt: Receipt) -> None:
    text = render_receipt(receipt)
    assert parse_receipt(f"{text}\nx = 1\n") == receipt
    assert all(line.startswith("#") for line in text.rstrip("\n").split("\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("#   speedup: 2.3149", "#   speedup: 9.9"),
        ("#   speedup: 2.3149", '#   speedup: "2"'),
        ("#   speedup: 2.3149", "#   speedup: fast"),
        ('#   run_id: "run-1"\n', ""),
        ('#   run_id: "run-1"', "#   run_id: 1"),
        ('#   gpu: "NVIDIA H200"', '#   gpu: ""'),
        ("# receipt", "# nothing"),
    ],
)
def test_a_changed_receipt_is_none(make_receipt: Callable[..., Receipt], old: str, new: str) -> None:
    text = render_receipt(make_receipt())
    assert old in text
    assert parse_receipt(text) is not None
    assert parse_receipt(text.replace(old, new)) is None


def test_an_unknown_entry_of_a_newer_program_is_passed_over(make_receipt: Callable[..., Receipt]) -> None:
    receipt = make_receipt()
    assert parse_receipt(render_receipt(receipt) + "#   colour: 3\n") == receipt


def test_the_id_depends_on_every_field(make_receipt: Callable[..., Receipt]) -> None:
    receipt = make_receipt()
    changed = [
        replace(receipt, **{name: "other" if isinstance(getattr(receipt, name), str) else 0.5})
        for name in Receipt.__dataclass_fields__
    ]
    assert len({receipt.receipt_id, *(c.receipt_id for c in changed)}) == len(changed) + 1
    assert len(receipt.receipt_id) == 8


def test_summarizes_what_was_measured(make_receipt: Callable[..., Receipt]) -> None:
    receipt = make_receipt()
    assert summarize(receipt) == (f"2.31x vs eager, 1.2x vs torch.compile; NVIDIA H200; receipt {receipt.receipt_id}")
    slow = make_receipt(speedup=123.4, speedup_over_compile=None, gpu="a\nGPU")
    assert summarize(slow) == f"123x vs eager; a GPU; receipt {slow.receipt_id}"


def test_summarizes_what_was_not_measured(make_receipt: Callable[..., Receipt]) -> None:
    unmeasured = make_receipt(speedup=None, speedup_over_compile=None, gpu="")
    assert summarize(unmeasured) == f"verified, not measured: no GPU; receipt {unmeasured.receipt_id}"


def test_a_speedup_needs_a_gpu(make_receipt: Callable[..., Receipt]) -> None:
    with pytest.raises(AssertionError):
        make_receipt(gpu="")


def test_is_stale_when_the_class_changed(make_receipt: Callable[..., Receipt]) -> None:
    text = "class Net:\n    x = 1\n"
    receipt = make_receipt(source_hash=source_hash(text))
    assert not is_stale(receipt, text + "    # a comment\n")
    assert is_stale(receipt, text.replace("1", "2"))


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        ("RMSNorm", "triton_rms_norm"),
        ("RMSNormResidual", "triton_rms_norm_residual"),
        ("Conv2dBNReLU", "triton_conv2d_bn_relu"),
        ("MLP", "triton_mlp"),
        ("Outer.Inner", "triton_outer_inner"),
        ("_Private", "triton_private"),
        ("scale_norm", "triton_scale_norm"),
    ],
)
def test_names_the_decorator_in_snake_case(class_name: str, expected: str) -> None:
    assert function_name(class_name) == expected
