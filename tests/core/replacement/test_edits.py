"""Insert, then revert: byte for byte the same file; in between, Python runs it from everywhere."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.capture.locate import class_source, find_modules, select_module
from adaexplore.capture.text import parse_source
from adaexplore.errors import UsageError
from adaexplore.model.identity import source_hash
from adaexplore.model.task import ModuleClass
from adaexplore.replacement.insert import LineEdit, apply_edit, plan_insertion
from adaexplore.replacement.receipt import Receipt, Section, function_name
from adaexplore.replacement.revert import plan_revert

FIXTURES = Path(__file__).parents[2] / "fixtures" / "modules"
PATH = Path("model.py")
Make = Callable[..., Section]
SOURCE = "from torch import nn\n\n\n# adaexplore: forward(x=f32[4])\n@final\nclass RMSNorm(nn.Module):\n    pass\n"
IMPORT = (
    '@__import__("model_triton", globals(), None, ["triton_rms_norm"], bool(__spec__ and __spec__.parent))'
    ".triton_rms_norm"
)


def find(source: str, name: str = "RMSNorm") -> ModuleClass:
    return select_module(find_modules(source), name, PATH)


def insert(source: str, section: Section, sidecar: str | None = None) -> tuple[str, str]:
    plan = plan_insertion(source, PATH, find(source, section.class_name), section, sidecar)
    return apply_edit(source, plan.edit), plan.sidecar_text


def revert(source: str, name: str, sidecar: str | None) -> tuple[str, str | None]:
    plan = plan_revert(source, PATH, find(source, name), sidecar)
    return apply_edit(source, plan.edit), plan.sidecar_text


def test_adds_one_line_above_all_decorators(make_section: Make) -> None:
    section = make_section()
    source, _ = insert(SOURCE, section)
    line = f"{IMPORT}  # adaexplore: 2.31x vs eager, 1.2x vs torch.compile; NVIDIA H200; receipt "
    assert source == SOURCE.replace("@final", f"{line}{section.receipt.receipt_id}\n@final")
    assert find(source).replacement_line == find(source).first_line == 5
    assert find(source).workload == find(SOURCE).workload


def test_says_so_where_nothing_was_measured(make_section: Make) -> None:
    section = make_section(gpu="", speedup=None, speedup_over_compile=None)
    source, _ = insert(SOURCE, section)
    assert f"  # adaexplore: verified, not measured: no GPU; receipt {section.receipt.receipt_id}\n" in source


def test_inserting_again_replaces_line_and_section(make_section: Make) -> None:
    once = insert(SOURCE, make_section())
    assert insert(*(once[0], make_section(), once[1])) == once
    renewed = insert(once[0], make_section(speedup=3.0), once[1])
    assert renewed == insert(SOURCE, make_section(speedup=3.0))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(IMPORT, f"@above\n{IMPORT}"),
        lambda text: text.replace('("model_triton", ', '(\n    "model_triton", ').replace("parent))", "parent)\n)"),
    ],
    ids=["another decorator above", "wrapped by a formatter"],
)
def test_copes_with_what_happened_to_the_line(make_section: Make, change: Callable[[str], str]) -> None:
    source, sidecar = insert(SOURCE, make_section())
    changed = change(source)
    assert changed != source
    reverted, _ = revert(changed, "RMSNorm", sidecar)
    assert reverted.replace("@above\n", "") == SOURCE
    again, _ = insert(changed, make_section(), sidecar)
    assert again.replace("@above\n", "") == source
    assert find(again).replacement_line == find(again).first_line


def test_the_receipt_is_not_stale_through_the_insertion(make_section: Make) -> None:
    source, _ = insert(SOURCE, make_section())
    before, after = (source_hash(class_source(text, find(text))) for text in (SOURCE, source))
    assert before == after


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.py")), ids=lambda path: path.stem)
def test_every_fixture_comes_back(make_section: Make, path: Path) -> None:
    source = path.read_bytes().decode()
    (module,) = find_modules(source)
    inserted, sidecar = insert(source, make_section(module.name))
    assert inserted.count("\n") == source.count("\n") + 1
    assert revert(inserted, module.name, sidecar) == (source, None)


def test_revert_keeps_the_other_classes_kernel(make_section: Make) -> None:
    source = SOURCE + "\n\nclass Other(nn.Module):\n    pass\n"
    first = insert(source, make_section())
    both = insert(first[0], make_section("Other"), first[1])
    assert revert(both[0], "Other", both[1]) == first


def test_revert_works_where_the_sidecar_is_gone(make_section: Make) -> None:
    inserted, _ = insert(SOURCE, make_section())
    assert revert(inserted, "RMSNorm", None) == (SOURCE, None)


def test_a_class_that_is_not_replaced_cannot_be_reverted() -> None:
    with pytest.raises(UsageError, match=r"model\.py:6: RMSNorm is not replaced"):
        revert(SOURCE, "RMSNorm", None)


def test_a_foreign_sidecar_stops_both(make_section: Make) -> None:
    with pytest.raises(UsageError, match="was not written by adaexplore"):
        insert(SOURCE, make_section(), "x = 1\n")
    inserted, _ = insert(SOURCE, make_section())
    with pytest.raises(UsageError, match="was not written by adaexplore"):
        revert(inserted, "RMSNorm", "x = 1\n")


def test_where_no_line_fits_the_file_is_left_alone(make_section: Make) -> None:
    source = "from torch import nn\nif True:\n    \\\nclass RMSNorm(nn.Module): pass\n"
    parse_source(source)
    with pytest.raises(UsageError, match="no decorator fits"):
        insert(source, make_section())


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (LineEdit(1, 0, "n\n"), "\ufeffn\na\r\nb\rc"),
        (LineEdit(2, 1, "n\n"), "\ufeffa\r\nn\nc"),
        (LineEdit(2, 2, ""), "\ufeffa\r\n"),
        (LineEdit(4, 0, ""), "\ufeffa\r\nb\rc"),
    ],
)
def test_an_edit_touches_nothing_else(edit: LineEdit, expected: str) -> None:
    assert apply_edit("\ufeffa\r\nb\rc", edit) == expected


INDENTS = st.sampled_from(["    ", "\t", "  "])
ODD_LINES = st.lists(
    st.sampled_from(
        ["", "# plain", "x = '\U0001f600 \u2028'", "\x0c", '"""a\n@b  # adaexplore: c\n"""', "@property\ndef f(): pass"]
    ),
    max_size=3,
)
DECORATORS = st.lists(
    st.sampled_from(["@a", "@b(1)  # why", "@(\n    c\n)", "# between", "@d('# adaexplore: x')"]), max_size=3
)
COMMENTS = st.sampled_from(["", "# adaexplore: forward(x=f32[4])", "# words\n# adaexplore: malformed\n# \U0001f600"])


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a file with one class, ``RMSNorm`` or ``Outer.RMSNorm``."""
    lines = [*draw(COMMENTS).split("\n"), *draw(DECORATORS), "class RMSNorm(nn.Module):", f"{draw(INDENTS)}x = 1"]
    if draw(st.booleans()):
        indent = draw(INDENTS)
        nested = "\n".join(lines).split("\n")
        lines = ["class Outer:", f"{indent}'''text'''", *(indent + line for line in nested)]
    text = "\n".join(["from torch import nn", *draw(ODD_LINES), *lines, *draw(ODD_LINES)])
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    return draw(st.sampled_from(["", "\ufeff"])) + text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"])))


RECEIPT = Receipt(*["text"] * 9, "interpreter", *[0.0] * 4)
OTHER = Section("Other", "triton_other", "def triton_other(cls): return cls\n", RECEIPT)


@given(files(), st.booleans())
def test_revert_undoes_insert_byte_for_byte(source: str, shared: bool) -> None:
    (module,) = find_modules(source)
    function = function_name(module.name)
    section = Section(module.name, function, f"def {function}(cls): return cls\n", RECEIPT)
    existing = None
    if shared:
        other = "from torch import nn\nclass Other(nn.Module): pass\n"
        existing = insert(other, OTHER)[1]
    inserted, sidecar = insert(source, section, existing)
    replaced = find(inserted, module.name)
    assert replaced.replacement_line == replaced.first_line == module.first_line
    assert (replaced.class_line, replaced.workload is None) == (module.class_line + 1, module.workload is None)
    assert insert(inserted, section, sidecar) == (inserted, sidecar)
    assert revert(inserted, module.name, sidecar) == (source, existing)


TORCH = "class Module:\n    pass\n"
CHECK = "assert RMSNorm.replaced_by == 'triton_rms_norm'\nprint('replaced')\n"


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("", ["model.py"]),
        ("", ["-c", "import model"]),
        ("pkg", ["-c", "import pkg.model"]),
        ("pkg", ["-m", "pkg.model"]),
        ("pkg", ["pkg/model.py"]),
        ("pkg/__init__.py", ["-c", "import pkg.model"]),
        ("pkg/__init__.py", ["-m", "pkg.model"]),
        ("pkg/__init__.py", ["pkg/model.py"]),
    ],
)
def test_python_finds_the_sidecar_however_the_file_is_run(
    tmp_path: Path, make_section: Make, folder: str, command: list[str]
) -> None:
    home = tmp_path / folder.removesuffix("/__init__.py")
    home.mkdir(exist_ok=True)
    if folder.endswith(".py"):
        (tmp_path / folder).touch()
    # Stand-ins: nothing here needs the real torch, and without triton the sidecar must still import.
    stand_ins = tmp_path / "stand_ins"
    (stand_ins / "torch").mkdir(parents=True)
    (stand_ins / "torch" / "__init__.py").touch()
    (stand_ins / "torch" / "nn.py").write_text(TORCH)
    (stand_ins / "triton.py").write_text("raise ImportError('no triton here')\n")
    source, sidecar = insert(SOURCE.replace("@final\n", "") + CHECK, make_section())
    (home / "model.py").write_text(source)
    (home / "model_triton.py").write_text(sidecar)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(stand_ins)},  # noqa: TID251 - a child process of a test
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("replaced\n", "")
