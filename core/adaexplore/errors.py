"""Every error this package raises.

A candidate that fails is data (an ``Evaluation``). An exception means that the user, the machine or we are at fault::

    AdaExploreError                     message, details, hint (what to do), exit code
    ├─ UsageError                       wrong use: no such file, class or option          exit 2
    ├─ ConfigurationError               a setting is wrong (names the key)                exit 2
    ├─ CaptureError                     the module cannot become a Task                   exit 1
    │  ├─ ModuleNotInstantiableError    its constructor or its inputs raise
    │  ├─ ForwardFailedError            its forward raises on the workload
    │  └─ UnsupportedOperatorError      no family covers an operator; names it and its line
    ├─ WorkerError                      the machine, not the candidate                    exit 3
    │  ├─ WorkerStartError              the interpreter does not start or lacks something
    │  ├─ WorkerTimeoutError            no reply within the limit; the worker was killed
    │  └─ WorkerCrashedError            the worker died
    └─ StoreError                       the store cannot be used                          exit 3
       ├─ StoreUnwritableError          disk full, read-only or forbidden
       ├─ SchemaVersionError            the file is newer than this program
       └─ RunLockedError                another process is at work on that run
"""

from __future__ import annotations

from typing import ClassVar


class AdaExploreError(Exception):
    """A fault with a sentence for people, the details for tests, and a hint that says what to do."""

    message: ClassVar[str] = "{reason}"
    """Template; filled from the keyword arguments."""
    hint_template: ClassVar[str] = ""
    """Default hint; filled from the keyword arguments; ``hint=`` overrides it."""
    exit_code: ClassVar[int] = 3

    def __init__(self, *, hint: str | None = None, **details: object) -> None:
        self.details = details
        self.hint = self.hint_template.format(**details) if hint is None else hint
        super().__init__(self.message.format(**details))


class UsageError(AdaExploreError):
    """The command was given something that does not exist or does not fit."""

    exit_code = 2


class ConfigurationError(AdaExploreError):
    """A setting is wrong."""

    message = "setting {key}: {reason}"
    exit_code = 2


class CaptureError(AdaExploreError):
    """The module cannot become a task."""

    exit_code = 1


class ModuleNotInstantiableError(CaptureError):
    """The module's constructor, or the function that makes its inputs, raised."""

    message = "{what} raised {error}"


class ForwardFailedError(CaptureError):
    """The module's forward raised on the workload."""

    message = "{name}.forward raised {error}"


class UnsupportedOperatorError(CaptureError):
    """No kernel family covers an operator of the module."""

    message = "{path}:{line}: {operator} is not supported: {reason}"


class WorkerError(AdaExploreError):
    """The worker process failed for a reason that is not the candidate's."""


class WorkerStartError(WorkerError):
    """The interpreter does not start, or lacks what a worker needs."""

    message = "{python}: {reason}"


class WorkerTimeoutError(WorkerError):
    """The worker gave no reply within its limit and was killed."""

    message = "no reply to {request!r} within {seconds:g} s; the worker was killed"


class WorkerCrashedError(WorkerError):
    """The worker died before it replied."""

    message = "the worker died during {request!r} ({reason})"


class StoreError(AdaExploreError):
    """The store cannot be used."""


class StoreUnwritableError(StoreError):
    """The store's folder or disk does not take writes."""

    message = "cannot write the store {path}: {reason}"
    hint_template = "Free space or choose another folder with ADAEXPLORE_DATA_DIR."


class SchemaVersionError(StoreError):
    """The store was written by a newer program."""

    message = "the store {path} has schema {found}, this program knows {known}"
    hint_template = "Update adaexplore, or choose another folder with ADAEXPLORE_DATA_DIR."


class RunLockedError(StoreError):
    """Another process is at work on this run."""

    message = "run {run_id} is being worked on by process {pid}"
    hint_template = "Wait for it, or end it, and try again."
