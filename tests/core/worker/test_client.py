"""A worker that answers, that is disturbed by the user's code, that hangs, that dies."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.worker import interpreters
from tests.core.worker.processes import ended, folder_of, group_of

from adaexplore.capture.export import opening
from adaexplore.capture.locate import find_modules
from adaexplore.capture.workload import workload_of
from adaexplore.errors import WorkerCrashedError, WorkerError, WorkerTimeoutError
from adaexplore.model.task import Policy
from adaexplore.worker.client import Stopped, WorkerClient
from adaexplore.worker.messages import Fault, Request

pytestmark = pytest.mark.slow

SCALE = """\
import torch
from torch import nn


# adaexplore: forward(x=f32[4, 8])
class Scale(nn.Module):
    def forward(self, x):
        return x * 2
"""


def opening_of(path: Path, source: str) -> dict[str, Any]:
    """Write ``source`` and give the OPEN request for its only module."""
    path.write_text(source)
    (module,) = find_modules(source)
    return opening(str(path), module.name, workload_of(source, module), Policy.STRICT)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[WorkerClient]:
    with WorkerClient(sys.executable, tmp_path / "worker.log") as client:
        yield client


def test_the_users_prints_threads_and_reads_disturb_nothing(client: WorkerClient, tmp_path: Path) -> None:
    noisy = SCALE.replace("import torch\n", NOISE, 1).replace("return", "print('forward', flush=True)\n        return")
    reply = client.open(opening_of(tmp_path / "noisy.py", noisy), 60.0)
    assert reply["ok"], reply
    assert reply["shapes"] == "x=float32[4, 8]"
    graph = client.ask(Request.EXPORT, {}, 60.0)["graph"]
    assert [o["target"] for o in graph["operators"]] == ["aten.mul.Tensor"]
    log = (tmp_path / "worker.log").read_text()
    assert '{"ok": true}' in log
    assert "forward" in log


NOISE = """\
import os, sys, threading, time
import torch

assert sys.stdin.read() == "" and os.read(0, 10) == b""


def _chatter():
    while True:
        print('{"ok": true}', flush=True)
        os.write(2, b"noise")
        time.sleep(0.001)


threading.Thread(target=_chatter, daemon=True).start()
"""


def test_the_environment_has_no_key(client: WorkerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "planted-secret")
    spying = f"import os\nopen({str(tmp_path / 'seen')!r}, 'w').write(repr(dict(os.environ)))\n{SCALE}"
    assert client.open(opening_of(tmp_path / "spying.py", spying), 60.0)["ok"]
    seen = (tmp_path / "seen").read_text()
    assert "PATH" in seen
    assert "planted-secret" not in seen


def test_a_worker_needs_torch_triton_and_numpy_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # the user's, and passed on
    python = interpreters.with_torch_alone(tmp_path / "env")
    source = (
        f"import sys\n{SCALE}\nours = [m for m in sys.modules if m.split('.')[0] == 'adaexplore']\n"
        f"open({str(tmp_path / 'seen')!r}, 'w').write(repr((ours, sys.path)))\n"
        "for name in ('cattrs', 'platformdirs', 'pygls', 'rich', 'tests'):\n"
        "    try:\n        __import__(name)\n    except ImportError:\n        continue\n"
        "    raise AssertionError(name)\n"
    )
    with WorkerClient(str(python), tmp_path / "worker.log") as client:
        reply = client.open(opening_of(tmp_path / "alone.py", source), 60.0)
        assert reply["ok"], reply
        assert client.ask(Request.EXPORT, {}, 60.0)["ok"]
    modules, path = eval((tmp_path / "seen").read_text())
    assert {m.split(".")[1] for m in modules if "." in m} == {"model", "worker"}
    assert "adaexplore.worker.client" not in modules
    ours = str(Path(interpreters.__file__).parents[3])
    assert not [p for p in path if p.startswith((ours, sys.prefix + "/"))], path


def test_a_request_that_takes_too_long_ends_the_worker_and_its_children(client: WorkerClient, tmp_path: Path) -> None:
    slow = "import subprocess, time\nsubprocess.Popen(['sleep', '1000'])\ntime.sleep(1000)\n" + SCALE
    client.hello()
    assert client.pid is not None
    pid = client.pid
    with pytest.raises(WorkerTimeoutError) as caught:
        client.open(opening_of(tmp_path / "slow.py", slow), 2.0)
    assert caught.value.details["request"] == "open"
    assert ended(group_of(pid))
    assert client.pid is None


def test_the_stop_event_ends_a_request_at_once(tmp_path: Path) -> None:
    stop = threading.Event()
    with WorkerClient(sys.executable, tmp_path / "worker.log", stop=stop) as client:
        client.hello()
        timer = threading.Timer(0.5, stop.set)
        timer.start()
        before = time.monotonic()
        with pytest.raises(Stopped):
            client.open(opening_of(tmp_path / "slow.py", f"import time\ntime.sleep(1000)\n{SCALE}"), 60.0)
        assert time.monotonic() - before < 5.0
        assert client.pid is None
        timer.join()


def test_a_worker_that_died_is_replaced_and_opens_its_module_again(client: WorkerClient, tmp_path: Path) -> None:
    arguments = opening_of(tmp_path / "scale.py", SCALE)
    assert client.open(arguments, 60.0)["ok"]
    first = client.pid
    assert first is not None
    os.kill(first, 9)
    with pytest.raises(WorkerCrashedError) as caught:
        client.ask(Request.EXPORT, {}, 60.0)
    assert caught.value.details["reason"] == "signal SIGKILL"
    assert client.ask(Request.EXPORT, {}, 60.0)["ok"]
    assert client.pid != first


def test_a_module_that_cannot_be_opened_again_is_our_fault_to_tell(client: WorkerClient, tmp_path: Path) -> None:
    path = tmp_path / "scale.py"
    assert client.open(opening_of(path, SCALE), 60.0)["ok"]
    client.kill()
    path.write_text("raise OSError('gone')\n")
    with pytest.raises(WorkerError, match="cannot be built again: OSError: gone"):
        client.ask(Request.EXPORT, {}, 60.0)


def test_killing_leaves_no_child_and_no_file(client: WorkerClient, tmp_path: Path) -> None:
    parent = "import subprocess\nsubprocess.Popen(['sleep', '1000'])\n" + SCALE
    assert client.open(opening_of(tmp_path / "parent.py", parent), 60.0)["ok"]
    assert client.pid is not None
    group, folder = group_of(client.pid), folder_of(client.pid)
    assert len(group) == 3  # the worker, what watches over it, and the user's child
    assert folder.is_dir()
    client.kill()
    assert ended(group)
    assert not folder.exists()


def test_nothing_is_written_beside_the_users_files(client: WorkerClient, tmp_path: Path) -> None:
    package = tmp_path / "acme"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert client.open(opening_of(package / "scale.py", SCALE), 60.0)["ok"]
    assert client.ask(Request.EXPORT, {}, 60.0)["ok"]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["__init__.py", "acme", "scale.py", "worker.log"]


def test_a_defect_of_ours_is_told_as_one_and_the_worker_lives(client: WorkerClient) -> None:
    reply = client.ask(Request.EXPORT, {}, 60.0)  # nothing is open
    assert (reply["ok"], reply["fault"]) == (False, Fault.INTERNAL)
    assert "Traceback" in client._log.read_text()
    assert client.ask(Request.HELLO, {}, 60.0)["ok"]


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkerError, match="worker.log: File exists"):
        WorkerClient(sys.executable, tmp_path / "file" / "worker.log").hello()
