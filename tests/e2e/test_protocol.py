"""The real server process and a raw client: searches, progress, cancel, faults, leaving."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
OPTIMIZE = "refactor.rewrite.adaexplore.optimize"


def titles(actions):
    return [action["title"] for action in actions]


def optimize(client, uri, line=5):
    (action,) = client.actions(uri, line, [OPTIMIZE])
    before = time.monotonic()
    result = client.execute(action["command"])
    return result, time.monotonic() - before


def process_is_gone(pid):
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def wait_gone(pid, seconds=10):
    deadline = time.monotonic() + seconds
    while not process_is_gone(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


def search_pid(path):
    """Give the id of the fake search that is at work on a file."""
    for entry in Path("/proc").iterdir():
        try:
            arguments = (entry / "cmdline").read_text().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if "fake_search.py" in " ".join(arguments) and any(a.startswith(f"{path}::") for a in arguments):
            return int(entry.name)
    return None


def test_a_search_from_the_action_to_the_end(connect, capabilities, module_file):
    client = connect("success")
    encoding = client.initialize(capabilities)["capabilities"]["positionEncoding"]
    assert encoding == capabilities["general"]["positionEncodings"][0]
    uri = client.open(module_file)
    assert titles(client.actions(uri, 11)) == ["Optimize with Triton"]
    result, seconds = optimize(client, uri)
    assert result["jobId"]
    assert seconds < 2  # and not as long as the search
    client.wait(client.ends, what="the progress did not end")
    tokens, values = zip(*client.progress(), strict=True)
    assert len(set(tokens)) == 1
    assert isinstance(tokens[0], str)
    assert values[0]["kind"] == "begin"
    assert values[0]["cancellable"] is True
    assert values[0]["percentage"] == 0
    assert values[-1] == {"kind": "end", "message": "2.30x faster than eager, 1.20x than torch.compile"}
    assert [value["kind"] for value in values].count("end") == 1
    assert all("percentage" in value for value in values[:-1])
    client.wait(lambda: client.of("window/showMessage"))
    (message,) = client.of("window/showMessage")
    assert message["type"] == 3
    assert message["message"] == "AdaExplore: Norm: 2.30x faster than eager, 1.20x than torch.compile"
    assert client.quit() == 0


def test_a_module_without_workload_says_why(connect, module_file, editors):
    from_vscode, from_neovim = connect("success"), connect("success")
    from_vscode.initialize(editors["vscode"])
    (action,) = from_vscode.actions(from_vscode.open(module_file), 15)
    assert "Bare (line 15) has no workload" in action["disabled"]["reason"]
    assert "command" not in action
    from_neovim.initialize(editors["neovim"])
    (action,) = from_neovim.actions(from_neovim.open(module_file), 15)
    assert "disabled" not in action
    assert "has no workload" in action["title"]
    assert from_neovim.execute(action["command"]) is None
    from_neovim.wait(lambda: from_neovim.of("window/showMessage"))
    (message,) = from_neovim.of("window/showMessage")
    assert "Write above the class" in message["message"]
    assert message["type"] == 1


def test_kinds_filter_the_actions(connect, capabilities, module_file):
    client = connect("success")
    client.initialize(capabilities)
    uri = client.open(module_file)
    assert len(client.actions(uri, 5, ["refactor"])) == 1
    assert len(client.actions(uri, 5, ["refactor.rewrite.adaexplore"])) == 1
    assert client.actions(uri, 5, ["quickfix"]) == []
    assert client.actions(uri, 5, ["refactor.rewrite.adaexplore.insert"]) == []
    assert client.actions(uri, 5, ["refactor.rewrite.ada"]) == []
    assert client.actions(uri, 1) == []


def test_an_unsaved_file_is_not_searched(connect, capabilities, module_file):
    client = connect("success")
    client.initialize(capabilities)
    uri = client.open(module_file)
    client.change(uri, 2, module_file.read_text() + "# more\n")
    result, _ = optimize(client, uri)
    assert result is None
    client.wait(lambda: client.of("window/showMessage"))
    assert "save model file.py first" in client.of("window/showMessage")[0]["message"]
    assert client.progress() == []
    client.change(uri, 3, module_file.read_text().replace("\n", "\r\n"))  # as saved, but for the line ends
    result, _ = optimize(client, uri)
    assert result["jobId"]
    client.wait(client.ends)


@pytest.mark.parametrize("way", ["command", "token", "both", "twice"])
def test_cancel_ends_the_search_and_the_progress(connect, capabilities, module_file, way):
    client = connect("interruptible")
    client.initialize(capabilities)
    uri = client.open(module_file)
    result, _ = optimize(client, uri)
    client.wait(lambda: any(value.get("message") == "1/3 · best 1.80x" for _, value in client.progress()))
    assert "search running: 1/3 · best 1.80x" in client.hover(uri, 5)
    (action,) = client.actions(uri, 7)
    assert action["title"] == "Cancel the search (1/3, best 1.80x)"
    again = client.execute({"command": "adaexplore.optimize", "arguments": action["command"]["arguments"]})
    assert again == result  # the same search, not a second one
    if way in ("token", "both"):
        client.notify("window/workDoneProgress/cancel", {"token": client.progress()[0][0]})
    if way in ("command", "both", "twice"):
        assert client.execute(action["command"]) is True
    if way == "twice":
        client.execute(action["command"])
    client.wait(client.ends, what="the progress did not end")
    time.sleep(0.3)
    (end,) = client.ends()
    assert end["message"] == "cancelled; best so far: 2.30x faster than eager, 1.20x than torch.compile"
    assert search_pid(module_file) is None
    assert client.execute(action["command"]) is False
    client.notify("window/workDoneProgress/cancel", {"token": client.progress()[0][0]})
    assert titles(client.actions(uri, 7)) == ["Optimize with Triton"]


def test_a_stubborn_search_is_killed(connect, editors, module_file):
    client = connect("stubborn")
    client.initialize(editors["vscode"])
    uri = client.open(module_file)
    optimize(client, uri)
    client.wait(lambda: any(value.get("message") == "1/3 · best 1.80x" for _, value in client.progress()))
    pid = search_pid(module_file)
    client.execute({"command": "adaexplore.cancel", "arguments": [{"uri": uri, "name": "Norm"}]})
    client.wait(client.ends, seconds=10)
    assert client.ends() == [{"kind": "end", "message": "cancelled"}]
    wait_gone(pid)


@pytest.mark.parametrize(
    ("behaviour", "end", "message"),
    [
        ("refuse", "model file.py:3: aten.sort is not supported", "Leave it out."),
        ("die", "the search was killed (signal 9)", "See "),
        ("nothing", "the search ended without a result (exit code 3)", ".log"),
        ("cut", "the search ended without a result (exit code 1)", ".log"),
    ],
)
def test_a_search_that_fails_ends_the_progress_and_says_so_once(connect, module_file, behaviour, end, message):
    client = connect(behaviour)
    client.initialize({"window": {"workDoneProgress": True}})
    uri = client.open(module_file)
    optimize(client, uri)
    client.wait(lambda: client.ends() and client.of("window/showMessage"))
    time.sleep(0.3)
    (only_end,) = client.ends()
    assert only_end["message"].endswith(end)
    (shown,) = client.of("window/showMessage")
    assert shown["type"] == 1
    assert message in shown["message"]


def test_a_flood_of_events_is_reported_four_times_a_second(connect, editors, module_file):
    client = connect("flood")
    client.initialize(editors["vscode"])
    uri = client.open(module_file)
    before = time.monotonic()
    optimize(client, uri)
    client.wait(client.ends)
    seconds = time.monotonic() - before
    reports = [value for _, value in client.progress() if value["kind"] == "report"]
    assert len(reports) <= 4 * seconds + 2
    assert len(client.ends()) == 1


@pytest.mark.parametrize("answer", ["refuse", False])
def test_a_client_that_takes_no_progress_gets_none(connect, module_file, answer):
    client = connect("success")
    client.answer_create = answer
    client.initialize({"window": {"workDoneProgress": True}})
    optimize(client, client.open(module_file))
    client.wait(lambda: client.of("window/showMessage"), seconds=30)
    assert len(client.of("window/workDoneProgress/create")) == 1
    assert client.progress() == []


def test_a_plain_client_is_not_asked_for_progress(connect, module_file):
    client = connect("success")
    client.initialize({})
    optimize(client, client.open(module_file))
    client.wait(lambda: client.of("window/showMessage"))
    assert client.of("window/workDoneProgress/create") == []
    assert client.progress() == []


def test_settings_come_from_options_and_configuration(connect, module_file, tmp_path):
    client = connect("arguments")
    client.configuration = {"steps": 4, "policy": None, "dataDir": 3, "unknown": 1}
    folder = tmp_path / "other data"
    client.initialize(
        {"workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}},
        {"adaexplore": {"steps": 9, "seconds": 5, "policy": "strict", "dataDir": str(folder)}},
    )
    client.wait(lambda: client.of("client/registerCapability"))
    uri = client.open(module_file)
    optimize(client, uri)
    client.wait(lambda: client.of("window/showMessage"))
    client.configuration = None
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.wait(lambda: len(client.of("workspace/configuration")) == 2)
    optimize(client, uri)
    client.wait(lambda: len(client.of("window/showMessage")) == 2)
    logs = sorted((folder / "jobs").glob("*.log"), key=lambda path: path.stat().st_mtime)
    assert '"--steps", "4", "--seconds", "5", "--policy", "strict"' in logs[0].read_text()
    assert '"--steps", "9", "--seconds", "5", "--policy", "strict"' in logs[1].read_text()
    assert "dataDir" in client.log()


def test_a_data_folder_that_cannot_be_made_is_told(connect, module_file):
    client = connect("success")
    client.initialize({}, {"dataDir": str(module_file / "below a file")})
    result, _ = optimize(client, client.open(module_file))
    assert result is None
    client.wait(lambda: client.of("window/showMessage"))
    assert "the search cannot be started" in client.of("window/showMessage")[0]["message"]


def test_faults_are_answered_and_the_server_lives(connect, capabilities, module_file):
    client = connect("success")
    early = client.reply(client.start("textDocument/hover", {}))
    assert early["error"]["code"] in (-32002, -32602)
    client.initialize(capabilities)
    for method, params, code in [
        ("textDocument/hover", {"textDocument": 3}, -32602),
        ("workspace/executeCommand", {"command": "adaexplore.optimize", "arguments": [3]}, -32602),
        ("workspace/executeCommand", {"command": "adaexplore.optimize", "arguments": []}, -32602),
        ("workspace/executeCommand", {"command": "no.such"}, -32602),
        ("codeAction/resolve", {"title": "x", "kind": "y", "data": {"uri": 3}}, -32602),
        ("codeAction/resolve", {"title": "x", "kind": "y", "data": {"uri": "file:///no", "name": "N"}}, -32603),
        ("no/such", {}, -32601),
    ]:
        reply = client.reply(client.start(method, params), 5)
        assert reply["error"]["code"] == code, (method, params, reply)
        assert "data" not in reply["error"], reply
    for uri in ("untitled:Untitled-1", "file:///no/such/file.py", "git:/a/b.py?x"):
        assert client.hover(uri, 0) is None
        assert client.actions(uri, 0) == []
    client.notify("textDocument/didChange", {"textDocument": {"uri": 3}, "contentChanges": 4})
    broken = module_file.with_name("broken.py")
    for text in (
        "class A(nn.Module:\n",
        "\0",
        "(" * 500,
        "class Ä(nn.Module): pass\n" * 3,
        "\ufeff",
        "\f\u2028\n\r\r\n",
    ):
        uri = client.open(broken, text)
        assert client.hover(uri, 0) is None
        assert client.actions(uri, 0) == []
    assert "Norm" in str(client.actions(client.open(module_file), 5))
    assert client.of("window/showMessage") == []


def test_a_defect_is_logged_once_and_answered_without_its_traceback(connect, module_file):
    client = connect("success")
    client.initialize({})
    reply = client.reply(client.start("test/defect", None))
    assert reply["error"] == {"code": -32603, "message": "ZeroDivisionError: a defect"}
    client.notify("test/defect", None)
    assert client.hover(client.open(module_file), 5), "the server lives"
    assert client.log().count("in on_defect") == 2, "once for the request, once for the notification"
    assert client.of("window/showMessage") == []


def test_opening_a_file_never_runs_it(connect, capabilities, tmp_path):
    witness = tmp_path / "it ran"
    path = tmp_path / "model.py"
    helper = tmp_path / "torch.py"  # in the place of a library
    for file in (helper, path):
        file.write_text(
            f"open({str(witness)!r}, 'w').write(__name__)\n"
            "import torch\n"
            "from torch import nn\n"
            "# adaexplore: forward(x=f32[8])\n"
            "class Norm(nn.Module):\n"
            "    def forward(self, x):\n"
            "        return x\n"
        )
    client = connect()
    client.initialize(capabilities)
    uri = client.open(path)
    assert "not optimized yet" in client.hover(uri, 4)
    assert titles(client.actions(uri, 5)) == ["Optimize with Triton"]
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert client.hover(uri, 5) is None
    assert not witness.exists()
    maps = Path(f"/proc/{client.process.pid}/maps").read_text()
    assert "libpython" in maps or "python" in maps
    assert "torch" not in maps
    assert "triton" not in maps


@pytest.mark.parametrize("way", ["exit", "exit without shutdown", "end of input", "parent", "kill"])
def test_the_server_leaves_at_once_and_the_search_goes_on(connect, module_file, way):
    client = connect("hang")
    parent = None
    if way == "parent":
        parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    client.initialize({"window": {"workDoneProgress": True}}, process_id=parent.pid if parent else None)
    optimize(client, client.open(module_file))
    client.wait(lambda: any(value.get("message") == "1/3 · best 1.80x" for _, value in client.progress()))
    pid = search_pid(module_file)
    assert pid is not None
    try:
        before = time.monotonic()
        if way == "exit":
            assert client.quit() == 0
        elif way == "exit without shutdown":
            client.notify("exit", None)
            assert client.process.wait(10) == 1
        elif way == "end of input":
            client.process.stdin.close()
            client.process.wait(10)
        elif way == "parent":
            parent.kill()
            parent.wait()
            client.process.wait(10)
        else:
            client.process.kill()
            client.process.wait(10)
        assert time.monotonic() - before < 5
        time.sleep(0.5)
        assert not process_is_gone(pid)
        assert os.getsid(pid) == pid  # a session of its own: no signal of the editor's reaches it
    finally:
        os.killpg(pid, signal.SIGKILL)


def test_requests_after_shutdown_are_refused(connect):
    client = connect("success")
    client.initialize({})
    client.request("shutdown", None)
    reply = client.reply(client.start("textDocument/hover", {"textDocument": {"uri": "file:///a"}, "position": {}}), 5)
    assert reply["error"]["code"] in (-32600, -32602)
