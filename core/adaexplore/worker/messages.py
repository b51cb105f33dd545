"""Requests to a worker and its replies: JSON objects, one a line. No torch.

Request: ``{"id": …, "request": NAME, …arguments}``. Reply: ``{"id": …, "ok": true, …results}`` or
``{"id": …, "ok": false, "fault": FAULT, "message": …, …details}``. Replies travel on a descriptor of their own, so that
nothing the user's code prints can be taken for one; the id is random, so that nothing but a reply matches.
"""

from __future__ import annotations

from enum import StrEnum


class Request(StrEnum):
    """What a worker can be asked."""

    HELLO = "hello"
    """Versions and the device."""
    OPEN = "open"
    """Build the module and its inputs; later requests are about it."""
    EXPORT = "export"
    """The graph of the open module."""
    COMPILE = "compile"
    """Compile a candidate's launches, for the device or for a named target."""
    COMPARE = "compare"
    """Run a candidate against float64."""
    MEASURE = "measure"
    """Time a candidate and the baselines."""


class Fault(StrEnum):
    """Why a request was answered with ``ok: false``."""

    NOT_INSTANTIABLE = "not_instantiable"
    """The user's file, constructor or inputs raised."""
    FORWARD_FAILED = "forward_failed"
    NOT_CAPTURED = "not_captured"
    """The module runs, but cannot become a graph."""
    CANDIDATE = "candidate"
    """The candidate raised; ``status`` says which kind of failure that is."""
    ENVIRONMENT = "environment"
    """Something is missing or too old here."""
    INTERNAL = "internal"
    """Our own mistake; the worker's log has the traceback."""
