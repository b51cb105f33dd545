"""The server with the real search: what it says, that it ends, and that it outlives the server."""

import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
MODULE = """\
import torch
from torch import nn


# adaexplore: forward(x=f32[8, 64])
class Scale(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * 2 + {extra}
"""
COMMAND = {"command": "adaexplore.optimize"}


@pytest.fixture
def start(connect, editors, tmp_path):
    """Give a function that opens the module in an editor."""

    def open_module(extra="1", steps=3):
        path = tmp_path / "scale.py"
        path.write_text(MODULE.format(extra=extra))
        client = connect()
        client.configuration = {"steps": steps}
        client.initialize(editors["vscode"])
        client.wait(lambda: client.of("workspace/configuration"))
        return client, client.open(path)

    return open_module


def optimize(client, uri):
    assert client.execute({**COMMAND, "arguments": [{"uri": uri, "name": "Scale"}]})["jobId"]


def reports(client, beginning):
    return [value for _, value in client.progress() if value.get("message", "").startswith(beginning)]


def family(pid):
    """Give a process and all below it."""
    children = [int(c) for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()]
    return [pid, *(member for child in children for member in family(child))]


def search_of(server):
    return next(pid for pid in family(server) if b"adaexplore.cli" in Path(f"/proc/{pid}/cmdline").read_bytes())


def wait_all_gone(pids, seconds=20):
    deadline = time.monotonic() + seconds
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, f"still there: {alive}"
        time.sleep(0.05)


def is_alive(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_cancel_keeps_the_best_and_leaves_no_process(start):
    client, uri = start(steps=1000)
    optimize(client, uri)
    client.wait(lambda: reports(client, "1/"), seconds=120)
    processes = family(search_of(client.process.pid))
    assert len(processes) > 1, "a search has a worker"
    client.execute({"command": "adaexplore.cancel", "arguments": [{"uri": uri, "name": "Scale"}]})
    client.wait(client.ends, seconds=20)
    wait_all_gone(processes)
    (end,) = client.ends()
    assert end["message"].startswith("cancelled; best so far: ")
    assert any(action["title"].startswith("Insert Triton kernel (") for action in client.actions(uri, 5))


def test_cancel_while_the_module_is_captured(start):
    client, uri = start()
    optimize(client, uri)
    client.wait(lambda: reports(client, "capturing"), seconds=60)
    processes = family(search_of(client.process.pid))
    client.notify("window/workDoneProgress/cancel", {"token": client.progress()[0][0]})
    client.wait(client.ends, seconds=20)
    wait_all_gone(processes)
    (end,) = client.ends()
    assert end["message"].startswith("cancelled")
    client.wait(lambda: client.of("window/showMessage"))
    assert client.of("window/showMessage")[0]["type"] == 3, "what one asked for is no error"


def test_a_search_outlives_its_server(start):
    client, uri = start()
    optimize(client, uri)
    client.wait(lambda: reports(client, "capturing"), seconds=60)
    search = search_of(client.process.pid)
    client.process.kill()
    client.process.wait()
    wait_all_gone([search], seconds=200)
    client, uri = start()
    assert any(action["title"].startswith("Insert Triton kernel (") for action in client.actions(uri, 5))
    assert client.process.poll() is None


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("torch.sort(x).values", "scale.py:8: "),
        ("undefined", "Scale.forward raised NameError"),
    ],
)
def test_a_module_that_is_refused_says_why_once(start, extra, said):
    client, uri = start(extra)
    optimize(client, uri)
    client.wait(lambda: client.ends() and client.of("window/showMessage"), seconds=120)
    (end,) = client.ends()
    assert said in end["message"]
    (shown,) = client.of("window/showMessage")
    assert shown["type"] == 1
    assert said in shown["message"]
    assert [action["title"] for action in client.actions(uri, 5)] == ["Optimize with Triton"]
