"""The parent's side of a worker: start, ask, time out, kill, replace. No torch."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import IO, Any

from adaexplore.config import START_SECONDS, worker_environment
from adaexplore.errors import WorkerCrashedError, WorkerError, WorkerStartError, WorkerTimeoutError
from adaexplore.model.serialization import from_data
from adaexplore.model.task import Environment
from adaexplore.worker.messages import Request

_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_POLL_SECONDS = 0.1
_LOG_TAIL = 400
_DEATH_SECONDS = 20.0
"""How long a killed process is waited for."""


class Stopped(Exception):
    """The stop event was set while a request was in flight; the worker was killed."""


class WorkerClient:
    """One worker process, started when first asked and again after it was killed.

    Not for use by several threads at a time.

    Args:
        python: The interpreter.
        log: Where the worker's output goes.
        interpret: Run kernels in Triton's interpreter.
        stop: When set, a request in flight raises :class:`Stopped`.
    """

    def __init__(self, python: str, log: Path, *, interpret: bool = False, stop: Event | None = None) -> None:
        self._python = python
        self._log = log
        self._interpret = interpret
        self._stop = stop or Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: IO[bytes] | None = None
        self._buffer = b""
        self._life: int | None = None
        self._folder = ""
        self._log_start = 0
        self._opening: dict[str, Any] | None = None

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        return self._process.pid if self._process else None

    def prestart(self) -> None:
        """Start the process without waiting for it, so that several import torch at the same time."""
        if self._process is None:
            self._start()

    def hello(self) -> Environment:
        """Start the worker if need be, and give its environment.

        Raises:
            WorkerStartError: It does not start, or lacks something; the message says what to install.
        """
        try:
            reply = self._ask(Request.HELLO, {}, START_SECONDS)
        except (WorkerCrashedError, WorkerTimeoutError) as error:
            reason = f"it does not start: {error.details.get('reason') or error}"
            raise WorkerStartError(python=self._python, reason=reason, hint=_choose_python()) from error
        if not reply["ok"]:
            raise WorkerStartError(python=self._python, reason=reply["message"], hint=_choose_python())
        if reply["missing"]:
            raise WorkerStartError(python=self._python, reason=reply["missing"], hint=_choose_python())
        return from_data(reply["environment"], Environment)

    def open(self, arguments: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Build a module in the worker; a replaced worker builds it again by itself."""
        if self._opening is not None and self._process is not None and self._opening["arguments"] == dict(arguments):
            return dict(self._opening["reply"])
        self._opening = None
        reply = self.ask(Request.OPEN, arguments, seconds)
        if reply["ok"]:
            self._opening = {"arguments": dict(arguments), "seconds": seconds, "reply": reply}
        return reply

    def ask(self, request: Request, arguments: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Raises:
            WorkerTimeoutError: No reply in time; the worker and its children were killed.
            WorkerCrashedError: The worker died.
            Stopped: The stop event was set; the worker was killed.
        """
        if self._process is None:
            self.hello()
            if self._opening is not None:
                reply = self._ask(Request.OPEN, self._opening["arguments"], self._opening["seconds"])
                if not reply["ok"]:
                    raise WorkerError(reason=f"the module cannot be built again: {reply['message']}")
        return self._ask(request, arguments, seconds)

    def kill(self) -> None:
        """End the worker and its children. The next request starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may hold a process for ever
            process.wait(timeout=_DEATH_SECONDS)
        for stream in (process.stdin, self._replies):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._life is not None:
            os.close(self._life)
        self._life = None
        shutil.rmtree(self._folder, ignore_errors=True)
        self._replies = None
        self._buffer = b""

    def __enter__(self) -> WorkerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def log_tail(self) -> str:
        """Give the end of what the present worker printed, on one line."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - _LOG_TAIL))
                text = log.read().decode(errors="replace")
        except OSError:
            return ""
        return " ".join(text.split())

    # -- the process

    def _start(self) -> subprocess.Popen[bytes]:
        extra = {"TRITON_INTERPRET": "1"} if self._interpret else {}
        log = self._open_log()
        reading, writing = os.pipe()
        living, life = os.pipe()
        folder = tempfile.mkdtemp(prefix="adaexplore-")
        try:
            process = subprocess.Popen(
                [self._python, str(_BOOTSTRAP), str(writing), str(living), folder],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(writing, living),
                env=worker_environment(extra),
                start_new_session=True,
            )
        except OSError as error:
            os.close(reading)
            os.close(life)
            os.rmdir(folder)
            raise WorkerStartError(
                python=self._python, reason=error.strerror or str(error), hint=_choose_python()
            ) from error
        finally:
            log.close()
            os.close(writing)
            os.close(living)
        self._process, self._replies, self._buffer = process, os.fdopen(reading, "rb", buffering=0), b""
        self._life, self._folder = life, folder
        return process

    def _open_log(self) -> IO[bytes]:
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            log = self._log.open("ab")
        except OSError as error:
            raise WorkerError(
                reason=f"cannot write the worker's log {self._log}: {error.strerror}",
                hint="Free space or choose another folder with ADAEXPLORE_DATA_DIR.",
            ) from error
        self._log_start = log.tell()
        return log

    def _ask(self, request: Request, arguments: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        process = self._process or self._start()
        token = secrets.token_hex(16)
        line = json.dumps({"id": token, "request": request, **arguments}) + "\n"
        assert process.stdin is not None
        try:
            process.stdin.write(line.encode())
            process.stdin.flush()
            return self._wait(request, token, seconds)
        except (OSError, EOFError) as error:
            reason = self._exit_reason()
            self.kill()
            raise WorkerCrashedError(request=str(request), reason=reason) from error
        except (WorkerTimeoutError, Stopped):
            self.kill()
            raise

    def _wait(self, request: Request, token: str, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            if self._stop.is_set():
                raise Stopped
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkerTimeoutError(request=str(request), seconds=seconds)
            line = self._read_line(min(left, _POLL_SECONDS))
            if line is None:
                continue
            try:
                reply = json.loads(line)
            except ValueError:
                continue  # not ours
            if isinstance(reply, dict) and reply.get("id") == token:
                return reply

    def _read_line(self, seconds: float) -> bytes | None:
        """Give the next line, or None where none came in time."""
        assert self._replies is not None
        if b"\n" not in self._buffer:
            if not select.select([self._replies], [], [], seconds)[0]:
                return None
            chunk = self._replies.read(1 << 16)
            if not chunk:
                raise EOFError
            self._buffer += chunk
        line, found, rest = self._buffer.partition(b"\n")
        if not found:
            return None
        self._buffer = rest
        return line

    def _exit_reason(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        if code < 0:
            return f"signal {signal.Signals(-code).name}"
        return "; ".join(filter(None, (f"exit code {code}", self.log_tail())))


def _choose_python() -> str:
    return "Name the interpreter where your torch lives with --python or ADAEXPLORE_PYTHON."
