"""The worker's loop: one request after the other, until the parent goes away."""

from __future__ import annotations

import json
import os
import platform
import queue
import sys
import threading
import traceback
from typing import IO, Any

from adaexplore.worker.messages import Fault, Request


class _Session:
    """What the worker remembers between requests: the open module, and the baselines."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        """Where candidates' files go; our parent removes it."""
        self.instance: Any = None
        self.policy = "user"
        self.baselines: Any = None
        self.interpreted = os.environ.get("TRITON_INTERPRET") == "1"  # noqa: TID251 - set by our parent
        self.replaced_dtype = ""

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        handlers = {
            Request.HELLO: self.hello,
            Request.OPEN: self.open,
            Request.EXPORT: self.export,
            Request.COMPILE: self.compile,
            Request.COMPARE: self.compare,
            Request.MEASURE: self.measure,
        }
        return handlers[Request(message["request"])](message)

    def hello(self, _: dict[str, Any]) -> dict[str, Any]:
        """Give versions and the device."""
        import torch

        triton_version = _triton_version()
        cuda = torch.cuda.is_available()
        environment = {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": triton_version,
            "cuda": str(torch.version.cuda or ""),
            "gpu": torch.cuda.get_device_name() if cuda else "",
            "driver": _driver_version() if cuda else "",
            "capability": ".".join(map(str, torch.cuda.get_device_capability())) if cuda else "",
            "n_processors": torch.cuda.get_device_properties().multi_processor_count if cuda else 0,
        }
        return {"environment": environment, "missing": _missing(environment, interpreted=self.interpreted)}

    def open(self, message: dict[str, Any]) -> dict[str, Any]:
        """Build the module and its inputs."""
        import torch

        from adaexplore.worker.compare import tree_to
        from adaexplore.worker.export import describe_inputs
        from adaexplore.worker.loading import build_instance
        from adaexplore.worker.precision import policy_flags, tf32_is_allowed

        device = "cuda" if torch.cuda.is_available() and not self.interpreted else "cpu"
        self.policy = message["policy"]
        self.baselines = None
        instance = build_instance(message["path"], message["class_name"], message["workload"], device, message["seed"])
        shapes = describe_inputs(instance)
        if self.interpreted and "bfloat16" in _dtypes(instance):
            instance = tree_to(instance, torch.float32, torch.bfloat16)
            self.replaced_dtype = "bfloat16"
        self.instance = instance
        with policy_flags(self.policy):
            allowed = tf32_is_allowed()
        return {"shapes": shapes, "allow_tf32": allowed}

    def export(self, _: dict[str, Any]) -> dict[str, Any]:
        """Give the graph."""
        from adaexplore.worker.export import export_graph

        return {"graph": export_graph(self.instance)}

    def _load(self, message: dict[str, Any]) -> Any:
        from adaexplore.worker.candidates import load_candidate

        return load_candidate(message["source"], message["function"], message["decorator"], self.folder)

    def compile(self, message: dict[str, Any]) -> dict[str, Any]:
        """Compile a candidate."""
        from adaexplore.worker.compile import compile_candidate
        from adaexplore.worker.precision import policy_flags

        with policy_flags(self.policy):
            return {"compilation": compile_candidate(self._load(message), self.instance, message["target"])}

    def compare(self, message: dict[str, Any]) -> dict[str, Any]:
        """Compare a candidate with float64."""
        from adaexplore.worker.compare import Comparison
        from adaexplore.worker.precision import error_factor, policy_flags

        if self.interpreted:
            from adaexplore.worker.interpreter import interpret_as_a_gpu_would

            interpret_as_a_gpu_would()
        if self.replaced_dtype:  # the guard must admit the dtype that stands in
            message["source"] = message["source"].replace(f"torch.{self.replaced_dtype}", "torch.float32")
        with policy_flags(self.policy):
            comparison = Comparison(
                self._load(message),
                self.instance,
                message["graph"],
                factor=error_factor(self.policy),
                interpreted=self.interpreted,
            )
            correctness = comparison.run()
        if self.replaced_dtype:
            note = f"interpreted in float32: Triton's interpreter computes {self.replaced_dtype} wrongly"
            correctness["note"] = "; ".join(filter(None, (note, correctness["note"])))
        return {"correctness": correctness}

    def measure(self, message: dict[str, Any]) -> dict[str, Any]:
        """Time a candidate and the baselines."""
        from adaexplore.worker.measure import make_baselines, measure_candidate
        from adaexplore.worker.precision import policy_flags

        with policy_flags(self.policy):
            if self.baselines is None:
                self.baselines = make_baselines(self.instance)
            return {"measurement": measure_candidate(self._load(message), self.instance, self.baselines)}


_ABOUT_CANDIDATES = (Request.COMPILE, Request.COMPARE, Request.MEASURE)


def _dtypes(instance: Any) -> set[str]:
    from adaexplore.worker.export import input_tensors

    tensors = [*input_tensors(instance), *instance.module.parameters(), *instance.module.buffers()]
    return {str(t.dtype).removeprefix("torch.") for t in tensors}


def _triton_version() -> str:
    try:
        import triton
    except ImportError:
        return ""
    return str(triton.__version__)


def _driver_version() -> str:
    try:
        import pynvml

        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
    except Exception:  # noqa: BLE001 - a courtesy: the worker needs torch and triton only
        return ""
    return version if isinstance(version, str) else version.decode()


def _missing(environment: dict[str, Any], *, interpreted: bool) -> str:
    """Say in one sentence what this interpreter lacks; empty where nothing is."""
    if _version(environment["torch"]) < (2, 6):
        return f"torch {environment['torch']} is too old: install torch 2.6 or newer there"
    if not environment["triton"]:
        if sys.platform != "linux":
            return "there is no Triton for this platform: search on Linux, or under WSL"
        return "Triton is missing: pip install 'triton>=3.2' there"
    if _version(environment["triton"]) < (3, 2):
        return f"triton {environment['triton']} is too old: install triton 3.2 or newer there"
    if interpreted:
        return _numpy_fault(environment["triton"])
    return ""


def _numpy_fault(triton_version: str) -> str:
    try:
        import numpy
    except ImportError:
        return "Triton's interpreter needs numpy: pip install numpy there"
    if _version(numpy.__version__) >= (2, 4) and _version(triton_version) < (3, 7):
        return (
            f"Triton {triton_version}'s interpreter breaks with numpy {numpy.__version__}: "
            "pip install 'numpy<2.4' there"
        )
    return ""


def _version(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.split("+")[0].split(".")[:2]:
        digits = "".join(c for c in part if c.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def _reply(session: _Session, message: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"id": message["id"], "ok": True, **session.answer(message)}
    except ImportError as error:
        if error.name not in ("torch", "numpy", "triton"):
            return _internal(message, error)
        text = f"{error.name} is missing: pip install {error.name} there"
        return {"id": message["id"], "ok": False, "fault": Fault.ENVIRONMENT, "message": text}
    except Exception as error:  # noqa: BLE001 - the fence of the worker's loop
        refusal = _refusal(message, error)
        if refusal is None:
            return _internal(message, error)
        return {"id": message["id"], "ok": False, "fault": refusal.fault, "message": str(refusal), **refusal.details}


def _refusal(message: dict[str, Any], error: Exception) -> Any:
    """Give the refusal that ``error`` is, or stands for; None where it is a defect of ours.

    A launch that goes wrong may be told anywhere later: while a candidate is judged, a lost GPU is its fault.
    """
    from adaexplore.worker.candidates import candidate_fault, device_is_lost
    from adaexplore.worker.loading import Refusal

    if isinstance(error, Refusal):
        return error
    if message["request"] in _ABOUT_CANDIDATES and device_is_lost(error):
        return candidate_fault(error, "crashed")
    return None


def _internal(message: dict[str, Any], error: BaseException) -> dict[str, Any]:
    text = f"{type(error).__name__}: {error}"
    traceback.print_exception(error)  # into the log
    return {"id": message["id"], "ok": False, "fault": Fault.INTERNAL, "message": text}


def _take_standard_input() -> IO[str]:
    """Give the requests' stream; from now on, whoever reads standard input finds it empty."""
    stream = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return stream


def _read_requests(stream: IO[str], requests: queue.Queue[dict[str, Any]]) -> None:
    """Queue requests; when the parent goes away, end this process at once."""
    for line in stream:
        requests.put(json.loads(line))
    os._exit(1)


def main(reply_fd: int, folder: str) -> None:
    """Answer requests from standard input on ``reply_fd`` until the parent closes it; ``folder`` is for files."""
    os.dup2(2, 1)  # what the user's code prints is no reply
    replies = os.fdopen(reply_fd, "w", encoding="utf-8")
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read_requests, args=(_take_standard_input(), requests), daemon=True).start()
    session = _Session(folder)
    while True:
        reply = _reply(session, requests.get())
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
