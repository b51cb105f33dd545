"""Insert and revert over the wire, applied by a client that does what the specification says, and nothing else."""

import copy
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
INSERT = "refactor.rewrite.adaexplore.insert"
REVERT = "refactor.rewrite.adaexplore.revert"


class Session:
    """An editor with one file open."""

    def __init__(self, client, capabilities, path, apply):
        client.initialize(capabilities)
        self.client = client
        self.resolves = "resolveSupport" in capabilities["textDocument"]["codeAction"]
        self.path = path
        text = path.read_bytes().decode()
        self.uri = client.open(path, text)
        self.documents = {self.uri: (1, text)}
        self._apply = apply

    @property
    def text(self):
        return self.documents[self.uri][1]

    def edit_text(self, text):
        version = self.documents[self.uri][0] + 1
        self.documents[self.uri] = (version, text)
        self.client.change(self.uri, version, text)

    def action(self, kind, line=5):
        actions = self.client.actions(self.uri, line, [kind])
        return actions[0] if actions else None

    def choose(self, action):
        """Apply an action as the client would; give the error of its resolution, where there is one."""
        if self.resolves:
            assert "edit" not in action
            reply = self.client.reply(self.client.start("codeAction/resolve", action))
            if "error" in reply:
                return reply["error"]
            action = reply["result"]
        before = self.documents[self.uri]
        self._apply(action["edit"], self.documents)
        if self.documents[self.uri] != before:
            self.client.change(self.uri, *self.documents[self.uri])
        return None


@pytest.fixture
def session(connect, capabilities, apply):
    return lambda path: Session(connect(), capabilities, path, apply)


def sidecar_of(path):
    return path.with_name(f"{path.stem}_triton.py")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_insert_and_revert_come_back_to_the_same_bytes(session, module_file, plant, ending):
    original = module_file.read_text().replace("\n", ending) + "# \u2028 no line end here, and \f none"
    module_file.write_bytes(original.encode())
    plant(module_file)
    editor = session(module_file)
    assert editor.action(INSERT, 14) is None, "the other class has no kernel"
    action = editor.action(INSERT, 11)
    assert action["title"] == "Insert Triton kernel (verified, not measured)"
    assert editor.choose(action) is None
    sidecar = sidecar_of(module_file)
    assert "def triton_norm(cls):" in sidecar.read_text()
    lines = editor.text.split(ending)
    assert lines[5].startswith("@__import__(")
    assert "\n".join(lines[:5] + lines[6:]) == original.replace(ending, "\n")
    assert "Triton kernel inserted: verified, not measured: no GPU" in editor.client.hover(editor.uri, 5)
    assert editor.action(INSERT) is None
    assert editor.choose(editor.action(REVERT)) is None
    assert editor.text == original
    assert not sidecar.exists()
    assert module_file.read_bytes() == original.encode(), "the user's file is the client's to write"


def test_the_inserted_module_is_the_original_to_python(session, tmp_path, plant):
    path = tmp_path / "layer.py"
    path.write_text(
        "import torch\n\n\n# adaexplore: forward(x=f32[8, 64])\nclass Same(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x\n"
    )
    plant(path, "Same")
    editor = session(path)
    editor.choose(editor.action(INSERT, 4))
    path.write_text(editor.text)
    check = "import torch, layer; x = torch.ones(8, 64); assert torch.equal(layer.Same()(x), x); print(layer.Same)"
    done = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "<class 'layer.Same'>", done.stderr


def test_a_second_class_joins_the_sidecar_and_leaves_it(session, module_file, plant):
    text = module_file.read_text().replace("class Bare", "# adaexplore: forward(x=f32[8, 64])\nclass Bare")
    module_file.write_text(text)
    plant(module_file)
    plant(module_file, "Bare", "r22")
    editor = session(module_file)
    editor.choose(editor.action(INSERT, 5))
    alone = sidecar_of(module_file).read_text()
    editor.choose(editor.action(INSERT, 17))
    assert "def triton_bare(cls):" in sidecar_of(module_file).read_text()
    assert editor.text.count("@__import__(") == 2
    editor.choose(editor.action(REVERT, 17))
    assert sidecar_of(module_file).read_text() == alone
    editor.choose(editor.action(REVERT, 5))
    assert editor.text == text
    assert not sidecar_of(module_file).exists()


def test_a_newer_kernel_takes_the_place_of_the_old(session, module_file, plant):
    plant(module_file)
    editor = session(module_file)
    editor.choose(editor.action(INSERT))
    once = editor.text
    assert editor.action(INSERT) is None
    plant(module_file, run_id="r22")
    editor.choose(editor.action(INSERT))
    assert editor.text.count("@__import__(") == 1
    assert editor.text != once, "the line names another receipt"
    assert '"r22"' in sidecar_of(module_file).read_text()
    editor.choose(editor.action(REVERT))
    assert editor.text == module_file.read_text()


def test_a_changed_class_gets_no_kernel(session, module_file, plant):
    plant(module_file)
    editor = session(module_file)
    action = editor.action(INSERT)
    editor.edit_text(editor.text.replace("x * self.weight", "x * self.weight + 1"))
    assert editor.action(INSERT) is None
    assert "stale" in editor.client.hover(editor.uri, 5)
    if editor.resolves:
        assert "changed since the search" in editor.choose(action)["message"]
    editor.edit_text(module_file.read_text().replace("import torch\n", "import torch\n\n\n"))
    moved = editor.action(INSERT, 7)
    assert moved is not None, "lines above it do not matter"
    editor.choose(moved)
    assert editor.text.splitlines()[7].startswith("@__import__(")


def test_a_file_of_the_users_in_the_sidecars_place_is_left_alone(session, module_file, plant, capabilities):
    plant(module_file)
    sidecar_of(module_file).write_text("mine = 1\n")
    editor = session(module_file)
    error = editor.choose(editor.action(INSERT))
    assert "was not written by adaexplore" in error["message"]
    assert "rename" in error["message"]
    assert sidecar_of(module_file).read_text() == "mine = 1\n"
    assert editor.text == module_file.read_text()


def test_a_client_that_resolves_nothing_gets_the_edit_at_once(connect, editors, apply, module_file, plant):
    capabilities = copy.deepcopy(editors["vscode"])
    del capabilities["textDocument"]["codeAction"]["resolveSupport"]
    plant(module_file)
    editor = Session(connect(), capabilities, module_file, apply)
    action = editor.action(INSERT)
    assert "edit" in action
    editor.choose(action)
    editor.choose(editor.action(REVERT))
    assert editor.text == module_file.read_text()
    sidecar_of(module_file).write_text("mine = 1\n")
    insert, optimize = editor.client.actions(editor.uri, 5)
    assert "was not written by adaexplore" in insert["disabled"]["reason"]
    assert optimize["title"] == "Optimize with Triton"


def test_an_unsaved_sidecar_is_edited_as_it_is_shown(session, module_file, plant):
    text = module_file.read_text().replace("class Bare", "# adaexplore: forward(x=f32[8, 64])\nclass Bare")
    module_file.write_text(text)
    plant(module_file)
    plant(module_file, "Bare", "r22")
    editor = session(module_file)
    editor.choose(editor.action(INSERT, 5))
    sidecar = sidecar_of(module_file)
    uri = editor.client.open(sidecar, sidecar.read_text() + "\nmine = 1\n", version=4)
    editor.documents[uri] = (4, sidecar.read_text() + "\nmine = 1\n")
    editor.choose(editor.action(INSERT, 17))
    assert "mine = 1" in editor.documents[uri][1]
    assert "def triton_bare(cls):" in editor.documents[uri][1]


def test_a_store_of_a_newer_program_is_told(session, module_file, plant, data_dir):
    plant(module_file)
    check = (
        f"import sqlite3; sqlite3.connect({str(data_dir / 'adaexplore.sqlite3')!r}).execute('PRAGMA user_version=99')"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
    editor = session(module_file)
    assert editor.action(INSERT) is None
    assert "has schema 99" in editor.client.hover(editor.uri, 5)
