"""What stands at the head of a sidecar's section: which source, on what, how good; written and read back."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields

from adaexplore.model.identity import short_hash, snake_case, source_hash

_ID_DIGITS = 8
_TITLE = "# receipt"
_ENTRY = re.compile(r"#   (\w+): (.*)")


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a kernel came from and what was found out about it.

    **Invariant**: a speedup only with the GPU that it was measured on.
    """

    source_hash: str
    """Of the class's text; when it differs, the receipt is stale."""
    task_id: str
    candidate_id: str
    run_id: str
    date: str
    """``2026-03-01``"""
    policy: str
    workload: str
    """``x=bfloat16[8, 4096]``, and where that came from."""
    torch: str
    triton: str
    how: str
    """``gpu``, or ``interpreter`` where the kernel ran in Triton's interpreter on the CPU."""
    relative_error: float
    """e = ‖z − y64‖ / ‖y64‖ of the kernel."""
    max_error: float
    """m = max|z − y64| / rms(y64) of the kernel."""
    eager_relative_error: float
    eager_max_error: float
    gpu: str = ""
    """Empty where there was none."""
    speedup: float | None = None
    """Eager's latency over the kernel's; None where it was not measured."""
    speedup_over_compile: float | None = None

    def __post_init__(self) -> None:
        assert self.gpu or (self.speedup is None and self.speedup_over_compile is None)

    @property
    def receipt_id(self) -> str:
        """Give 8 hexadecimal digits that depend on every field."""
        return short_hash("receipt", *(f"{name}={text}" for name, text in _entries(self)))[:_ID_DIGITS]


@dataclass(frozen=True, slots=True)
class Section:
    """One class's part of a sidecar."""

    class_name: str
    """Qualified: ``Outer.Inner``."""
    function: str
    """The class decorator that ``text`` defines; ``function_name(class_name)``."""
    text: str
    """Python that stands by itself below the sidecar's header; every name of it is prefixed."""
    receipt: Receipt


def function_name(class_name: str) -> str:
    """Give the decorator's name: ``triton_rms_norm`` for ``RMSNorm``, ``triton_outer_inner`` for ``Outer.Inner``."""
    return f"triton_{snake_case(class_name)}"


def summarize(receipt: Receipt) -> str:
    """Give what the comment in the user's file says: ``2.31x vs eager, 1.2x vs torch.compile; NVIDIA H200; …``."""
    if receipt.speedup is None:
        found = "verified, not measured" + ("" if receipt.gpu else ": no GPU")
    else:
        found = f"{_times(receipt.speedup)} vs eager"
        if receipt.speedup_over_compile is not None:
            found += f", {_times(receipt.speedup_over_compile)} vs torch.compile"
        found += f"; {receipt.gpu}"
    return " ".join(f"{found}; receipt {receipt.receipt_id}".split())


def is_stale(receipt: Receipt, class_text: str) -> bool:
    """Tell whether the class has changed since; ``class_text`` is what ``capture.locate.class_source`` gives."""
    return source_hash(class_text) != receipt.source_hash


def render_receipt(receipt: Receipt) -> str:
    """Give the comment block, each value as JSON."""
    lines = [f"{_TITLE} {receipt.receipt_id}", *(f"#   {name}: {text}" for name, text in _entries(receipt))]
    return "\n".join(lines) + "\n"


def parse_receipt(text: str) -> Receipt | None:
    """Read the comment block back from a section's text; None where it is incomplete or was changed."""
    names = {f.name for f in fields(Receipt)}
    values: dict[str, object] = {}
    lines = iter(text.split("\n"))
    title = next((line for line in lines if line.startswith(f"{_TITLE} ")), "")
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            break
        if entry[1] not in names:
            continue  # the section's checksum, or an entry of a newer program
        try:
            values[entry[1]] = json.loads(entry[2])
        except ValueError:
            return None
    for f in fields(Receipt):
        number = "float" in str(f.type)
        if f.name in values and not isinstance(values[f.name], (float, int, type(None)) if number else str):
            return None
    try:
        receipt = Receipt(**values)  # type: ignore[arg-type] # the types were checked above
    except (TypeError, AssertionError):
        return None
    return receipt if title == f"{_TITLE} {receipt.receipt_id}" else None


def _entries(receipt: Receipt) -> list[tuple[str, str]]:
    return [(f.name, json.dumps(getattr(receipt, f.name), ensure_ascii=False)) for f in fields(Receipt)]


def _times(ratio: float) -> str:
    return f"{ratio:.3g}x" if ratio < 100 else f"{ratio:.0f}x"
