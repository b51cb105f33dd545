import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest

from adaexplore.capture.locate import class_source, find_modules
from adaexplore.model.candidate import Candidate, CandidateId, StepKind
from adaexplore.model.evaluation import Correctness, Evaluation, EvaluationStatus
from adaexplore.model.identity import source_hash
from adaexplore.model.run import Run, RunId, RunOutcome, RunSettings, StepRecord
from adaexplore.model.task import Environment, ForwardParameter, Graph, GraphInput, InputKind, Policy, Task, TaskId
from adaexplore.store.sqlite import SqliteStore

TESTS = Path(__file__).parents[1]
SERVE = TESTS / "e2e" / "serve_with_fake.py"

# What each editor announced in a real session (vscode-languageclient 11 in VS Code 1.100, Neovim 0.11.4), shortened
# to what this server reads.
VSCODE = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceEdit": {
            "documentChanges": True,
            "resourceOperations": ["create", "rename", "delete"],
            "failureHandling": "textOnlyTransactional",
        },
    },
    "textDocument": {
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "codeAction": {
            "isPreferredSupport": True,
            "disabledSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit", "command"]},
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "refactor"]}},
        },
    },
    "window": {"workDoneProgress": True},
}
NEOVIM = {
    "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
    "workspace": {
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": False},
        "workspaceEdit": {"resourceOperations": ["rename", "create", "delete"]},
    },
    "textDocument": {
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "codeAction": {
            "isPreferredSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit", "command"]},
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "refactor"]}},
        },
    },
    "window": {"workDoneProgress": True},
}
EDITORS = {"vscode": VSCODE, "neovim": NEOVIM}


class Client:
    """A JSON-RPC client that sends what it is told and keeps all it gets."""

    def __init__(self, command, environment=None):
        base = {**os.environ, **(environment or {})}  # noqa: TID251 - the child's environment
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=base
        )
        self.messages = []
        self.configuration = None
        self.answer_create = True
        self._replies = {}
        self._next = 0
        self._changed = threading.Condition()
        self._lock = threading.Lock()
        self.stderr = queue.Queue()
        self.broken = None
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self._lock:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self.process.stdin.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def start(self, method, params):
        with self._lock:
            self._next += 1
            number = self._next
        self.send({"id": number, "method": method, "params": params})
        return number

    def reply(self, number, seconds=20):
        self.wait(lambda: number in self._replies, seconds, f"no reply to request {number}")
        return self._replies[number]

    def request(self, method, params, seconds=20):
        reply = self.reply(self.start(method, params), seconds)
        assert "error" not in reply, reply
        return reply["result"]

    def wait(self, condition, seconds=20, what="not in time"):
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                assert left > 0, f"{what}; stderr: {self.log()}; messages: {self.messages[-5:]}"
                assert self.broken is None, f"{what}: {self.broken}; stderr: {self.log()}"
                self._changed.wait(left)

    def of(self, method):
        return [message["params"] for message in list(self.messages) if message.get("method") == method]

    def progress(self):
        return [(value["token"], value["value"]) for value in self.of("$/progress")]

    def ends(self):
        return [value for _, value in self.progress() if value["kind"] == "end"]

    def log(self):
        return "".join(list(self.stderr.queue))

    def initialize(self, capabilities, options=None, process_id=None):
        params = {"processId": process_id, "rootUri": None, "capabilities": capabilities}
        result = self.request("initialize", {**params, "initializationOptions": options})
        self.notify("initialized", {})
        return result

    def open(self, path, text=None, version=1):
        uri = path.as_uri()
        text = path.read_text() if text is None else text
        document = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def change(self, uri, version, text):
        identifier = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": text}]})

    def actions(self, uri, line, only=None):
        place = {"line": line, "character": 0}
        params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}}
        context = {"diagnostics": []} if only is None else {"diagnostics": [], "only": only}
        return self.request("textDocument/codeAction", {**params, "context": context})

    def hover(self, uri, line, character=0):
        place = {"line": line, "character": character}
        result = self.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": place})
        return None if result is None else result["contents"]["value"]

    def execute(self, command):
        params = {"command": command["command"], "arguments": command["arguments"]}
        return self.request("workspace/executeCommand", params)

    def quit(self):
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(10)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _read(self):
        try:
            while True:
                length = None
                while (line := self.process.stdout.readline()) != b"\r\n":
                    assert line, "the server closed its output"
                    name, _, value = line.partition(b":")
                    assert name in (b"Content-Length", b"Content-Type"), f"no header: {line!r}"
                    if name == b"Content-Length":
                        length = int(value)
                self._take(json.loads(self.process.stdout.read(length)))
        except Exception as error:  # noqa: BLE001 - the tests' own fence: a waiting test is told
            with self._changed:
                self.broken = error
                self._changed.notify_all()

    def _take(self, message):
        if "method" in message and "id" in message:
            self._answer(message)
        with self._changed:
            if "method" in message:
                self.messages.append(message)
            else:
                self._replies[message["id"]] = message
            self._changed.notify_all()

    def _answer(self, message):
        if message["method"] == "workspace/configuration":
            self.send({"id": message["id"], "result": [self.configuration for _ in message["params"]["items"]]})
        elif message["method"] == "window/workDoneProgress/create" and self.answer_create == "refuse":
            self.send({"id": message["id"], "error": {"code": -32600, "message": "no"}})
        elif message["method"] != "window/workDoneProgress/create" or self.answer_create:
            self.send({"id": message["id"], "result": None})

    def _drain(self):
        for line in self.process.stderr:
            self.stderr.put(line.decode(errors="replace"))


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def connect(data_dir):
    """Give a function that starts the server: the real one, or with a fake search of some behaviour."""
    clients = []

    def start(behaviour=None, environment=None):
        command = [sys.executable, "-m", "adaexplore_lsp"]
        if behaviour is not None:
            command = [sys.executable, str(SERVE), behaviour]
        client = Client(command, {"ADAEXPLORE_DATA_DIR": str(data_dir), **(environment or {})})
        clients.append(client)
        return client

    yield start
    for client in clients:
        client.close()


@pytest.fixture
def editors():
    return EDITORS


@pytest.fixture(params=sorted(EDITORS))
def capabilities(request):
    return EDITORS[request.param]


@pytest.fixture
def module_file(tmp_path):
    path = tmp_path / "model file.py"
    path.write_text(
        "import torch\n"
        "from torch import nn\n"
        "\n"
        "\n"
        "# adaexplore: init(dim=64) forward(x=f32[8, 64])\n"
        "class Norm(nn.Module):  # 😀\n"
        "    def __init__(self, dim):\n"
        "        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.ones(dim))\n"
        "\n"
        "    def forward(self, x):\n"
        "        return x * self.weight\n"
        "\n"
        "\n"
        "class Bare(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x\n"
    )
    return path


@pytest.fixture
def plant(data_dir):
    """Give a function that writes a verified result for a class into the store, without a search.

    Its kernel is no kernel: it returns its input. What an edit does with it is real.
    """

    def write(path, name="Norm", run_id="r1"):
        text = path.read_text()
        module = next(m for m in find_modules(text) if m.name == name)
        graph = Graph(
            inputs=(GraphInput("x", InputKind.ARGUMENT, "x", (8, 64), "float32", True),),
            operators=(), outputs=("x",), output_structure="tensor", symbols=(),
            parameters=(ForwardParameter("x", True, None, None),), reads=(), submodules=(),
        )  # fmt: skip
        digest = source_hash(class_source(text, module))
        task = Task(
            id=TaskId("t"), path=str(path.resolve()), class_name=name, source_hash=digest, workload=module.workload,
            policy=Policy.USER, graph=graph, source_lines={}, shapes="x=float32[8, 64]",
        )  # fmt: skip
        environment = Environment("3.11", "2.13.0", "3.6.0")
        evaluation = Evaluation(
            EvaluationStatus.PASSED,
            "measure",
            "not measured: no GPU",
            Correctness("interpreter", 4, 0.0, 0.0, 0.0, 0.0),
        )
        settings = RunSettings(3, None, 0, "builtin", sys.executable, "cuda:90")
        run = Run(RunId(run_id), task, settings, environment, f"2026-03-01T00:00:0{len(run_id)}Z")
        source = f"def {name.lower()}_forward(module, x):\n    return x\n"
        candidate = Candidate(CandidateId(f"c-{run_id}"), source, "builtin", StepKind.LARGE)
        store = SqliteStore(data_dir)
        store.create_run(run)
        store.add_step(StepRecord(run.id, 1, candidate, evaluation, 1.0))
        store.finish_run(run.id, RunOutcome.VERIFIED, 1.0, 1, evaluation)
        store.close()

    return write


def apply_edit(edit, documents):
    """Apply a workspace edit as the specification says, to files and to `documents`: URI → (version, text)."""
    for change in edit["documentChanges"]:
        uri = change.get("uri") or change["textDocument"]["uri"]
        path = Path(url2pathname(urlparse(uri).path))
        if change.get("kind") == "create":
            assert not path.exists()
            path.touch()
        elif change.get("kind") == "delete":
            path.unlink()
            documents.pop(uri, None)
        else:
            version, text = documents.get(uri, (None, None))
            assert change["textDocument"]["version"] == version
            if text is None:
                text = path.read_bytes().decode()
            for text_edit in change["edits"]:
                text = apply_text_edit(text, text_edit)
            if uri in documents:
                documents[uri] = (version + 1, text)
            else:
                path.write_bytes(text.encode())


def apply_text_edit(text, edit):
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]
    offsets = []
    for position in (edit["range"]["start"], edit["range"]["end"]):
        assert position["character"] == 0
        offsets.append(starts[position["line"]] if position["line"] < len(starts) else len(text))
    return text[: offsets[0]] + edit["newText"] + text[offsets[1] :]


@pytest.fixture
def apply():
    return apply_edit
