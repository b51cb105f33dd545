"""Errors of a result against float64, with non-finite values compared by position."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from adaexplore.worker.precision import FLOORS


@dataclass(frozen=True, slots=True)
class Errors:
    """e = ‖z − y64‖ / ‖y64‖ and m = max|z − y64| / rms(y64), over the positions where all are finite."""

    relative: float
    largest: float


def errors(result: torch.Tensor, exact: torch.Tensor) -> Errors:
    """Give the errors of ``result`` (any float dtype) against ``exact`` (float64), both of shape ``(n,)``.

    Returns:
        Infinite errors where ``exact`` is zero throughout and ``result`` is not.
    """
    if exact.numel() == 0:
        return Errors(0.0, 0.0)
    difference = result.double() - exact
    norm, worst = float(difference.norm()), float(difference.abs().max())
    scale = float(exact.norm())
    if scale == 0.0:
        return Errors(0.0, 0.0) if norm == 0.0 else Errors(float("inf"), float("inf"))
    return Errors(norm / scale, worst / (scale / exact.numel() ** 0.5))


def finite_mismatch(result: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> str:
    """Say where NaN and Inf differ; empty where they do not.

    At each position ``result`` must be finite where float64 is finite, or be what eager is; and where float64 is not
    finite it must be the same NaN or Inf, or what eager is. So a more exact result may avoid eager's overflow, and
    nothing else may differ.
    """
    result, eager = result.double(), eager.double()
    same_as_eager = (result == eager) | (result.isnan() & eager.isnan())
    same_as_exact = (result == exact) | (result.isnan() & exact.isnan())
    fine = torch.where(exact.isfinite(), result.isfinite() | same_as_eager, same_as_exact | same_as_eager)
    # eager may be finite where float64 overflowed nothing: a finite result stands there, too
    fine |= result.isfinite() & eager.isfinite()
    bad = int((~fine).sum())
    if not bad:
        return ""
    position = int((~fine).nonzero()[0])
    return (
        f"{bad} of {fine.numel()} values differ in being finite; at flat index {position}: "
        f"{float(result[position])} where eager has {float(eager[position])}"
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """One output's comparison."""

    candidate: Errors
    eager: Errors
    fault: str
    """Empty where it passed."""


def judge(result: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, factor: float) -> Verdict:
    """Compare one float output with float64, by eager's errors and the dtype's floors."""
    flat = [t.detach().reshape(-1) for t in (result, eager, exact)]
    fault = finite_mismatch(flat[0], flat[1], flat[2].double())
    finite = flat[0].isfinite() & flat[1].isfinite() & flat[2].isfinite()
    if not bool(finite.all()):
        flat = [t[finite] for t in flat]
    exact64 = flat[2].double()
    ours, theirs = errors(flat[0], exact64), errors(flat[1], exact64)
    floor_e, floor_m = FLOORS[result.dtype]
    limit_e, limit_m = max(factor * theirs.relative, floor_e), max(factor * theirs.largest, floor_m)
    if not fault and not ours.relative <= limit_e:
        fault = f"relative error {ours.relative:.2e}, allowed {limit_e:.2e} (eager {theirs.relative:.2e})"
    if not fault and not ours.largest <= limit_m:
        fault = f"largest error {ours.largest:.2e}, allowed {limit_m:.2e} (eager {theirs.largest:.2e})"
    return Verdict(ours, theirs, fault)
