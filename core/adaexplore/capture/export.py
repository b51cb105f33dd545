"""Ask a worker to export a module; gives the Task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from adaexplore.capture.locate import class_source
from adaexplore.errors import (
    CaptureError,
    ForwardFailedError,
    ModuleNotInstantiableError,
    WorkerCrashedError,
    WorkerError,
    WorkerStartError,
    WorkerTimeoutError,
)
from adaexplore.model.identity import short_hash, source_hash
from adaexplore.model.serialization import from_data, to_data, to_json
from adaexplore.model.task import Graph, ModuleClass, Policy, Task, TaskId, Workload
from adaexplore.worker.client import WorkerClient
from adaexplore.worker.messages import Fault, Request

CAPTURE_SEED = 0


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to be captured."""

    path: Path
    source: str
    module: ModuleClass
    workload: Workload
    policy: Policy


def opening(task_path: str, class_name: str, workload: Workload, policy: Policy) -> dict[str, Any]:
    """Give the arguments of an OPEN request."""
    return {
        "path": task_path,
        "class_name": class_name,
        "workload": to_data(workload),
        "policy": policy,
        "seed": CAPTURE_SEED,
    }


def capture(subject: Subject, worker: WorkerClient, seconds: float) -> tuple[Task, bool]:
    """Build and export the module in ``worker``.

    Returns:
        The task, and whether fp32 products may use TF32 under its policy in the user's program.

    Raises:
        CaptureError: The module's code raises, or it cannot become a graph; the message has the line.
        WorkerError: The worker's interpreter is at fault.
    """
    name, path = subject.module.name, str(subject.path)
    try:
        opened = worker.open(opening(path, name, subject.workload, subject.policy), seconds)
        if not opened["ok"]:
            refuse(opened, subject.path, name, worker)
        exported = worker.ask(Request.EXPORT, {}, seconds)
    except WorkerTimeoutError as error:
        raise CaptureError(
            reason=f"{name}: building and exporting it took more than {seconds:g} s",
            hint="Give a smaller workload in an # adaexplore: comment.",
        ) from error
    except WorkerCrashedError as error:
        raise CaptureError(reason=f"{name}: building or exporting it ended the process ({error})") from error
    if not exported["ok"]:
        refuse(exported, subject.path, name, worker)
    graph = from_data(exported["graph"], Graph)
    lines = subject.source.splitlines()
    wanted = {op.line for op in graph.operators if op.line is not None and op.line <= len(lines)}
    text_hash = source_hash(class_source(subject.source, subject.module))
    task = Task(
        id=TaskId(short_hash("task", text_hash, to_json(subject.workload), subject.policy, to_json(graph))),
        path=path,
        class_name=name,
        source_hash=text_hash,
        workload=subject.workload,
        policy=subject.policy,
        graph=graph,
        source_lines={line: lines[line - 1] for line in sorted(wanted)},
        shapes=opened["shapes"],
    )
    return task, bool(opened["allow_tf32"])


def refuse(reply: dict[str, Any], path: Path, name: str, worker: WorkerClient) -> NoReturn:
    """Raise the error that a worker's refusal stands for."""
    message, fault = str(reply["message"]), reply["fault"]
    if fault == Fault.NOT_INSTANTIABLE:
        raise ModuleNotInstantiableError(
            what=reply.get("what", name), error=message, hint="Run the file with Python to see the whole traceback."
        )
    if fault == Fault.FORWARD_FAILED:
        raise ForwardFailedError(name=name, error=message, hint="Check the workload's shapes and dtypes.")
    if fault == Fault.NOT_CAPTURED:
        line = reply.get("line")
        raise CaptureError(reason=f"{path}{f':{line}' if line else ''}: {name} cannot be captured: {message}")
    if fault == Fault.ENVIRONMENT:
        raise WorkerStartError(python="the worker", reason=message)
    raise WorkerError(reason=f"the worker failed: {message}", hint=f"Its log ends: {worker.log_tail()}")
