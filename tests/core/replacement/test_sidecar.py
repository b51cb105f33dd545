"""Sections enter and leave a sidecar by name; what is not ours stays."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from adaexplore.errors import UsageError
from adaexplore.replacement.receipt import Section
from adaexplore.replacement.sidecar import parse_receipts, put_section, sidecar_path, take_section

PATH = Path("folder/model.py")
Make = Callable[..., Section]


class PythonFile(SingleFileSnapshotExtension):
    """One Python file a snapshot."""

    file_extension: ClassVar[str] = "py"
    _write_mode = WriteMode.TEXT


def test_a_full_sidecar_reads_well(make_section: Make, snapshot: SnapshotAssertion) -> None:
    text = put_section(None, make_section(), PATH)
    text = put_section(
        text, make_section("Outer.Inner", how="interpreter", gpu="", speedup=None, speedup_over_compile=None), PATH
    )
    ast.parse(text)
    assert text == snapshot(extension_class=PythonFile)


def test_sits_beside_the_file() -> None:
    assert sidecar_path(PATH) == Path("folder/model_triton.py")


def test_sections_come_and_go_without_a_trace(make_section: Make) -> None:
    first = put_section(None, make_section("First"), PATH)
    both = put_section(first, make_section("Second"), PATH)
    assert list(parse_receipts(both)) == ["First", "Second"]
    assert take_section(both, "Second", PATH) == first
    rest = take_section(both, "First", PATH)
    assert rest == put_section(None, make_section("Second"), PATH)
    assert take_section(rest, "Second", PATH) is None
    assert take_section(both, "Third", PATH) == both


def test_putting_a_section_twice_replaces_it_where_it_is(make_section: Make) -> None:
    both = put_section(put_section(None, make_section("First"), PATH), make_section("Second"), PATH)
    assert put_section(both, make_section("First"), PATH) == both
    renewed = put_section(both, make_section("First", run_id="run-2"), PATH)
    assert [(name, receipt.run_id) for name, receipt in parse_receipts(renewed).items()] == [
        ("First", "run-2"),
        ("Second", "run-1"),
    ]


def test_an_empty_file_may_be_filled(make_section: Make) -> None:
    assert put_section("\n", make_section(), PATH) == put_section(None, make_section(), PATH)


def test_git_may_change_line_endings_and_tools_trailing_space(make_section: Make) -> None:
    text = put_section(None, make_section("First"), PATH)
    windows = text.replace("\n", "\r\n")
    assert list(parse_receipts(windows)) == ["First"]
    both = put_section(windows, make_section("Second"), PATH)
    assert both.count("\r\n") == both.count("\n")
    assert take_section(both, "Second", PATH) == windows
    assert take_section(windows, "First", PATH) is None
    assert take_section(text.replace("\n\n\n", "\n  \n\n").rstrip("\n"), "First", PATH) is None


def test_what_the_user_added_outside_stays(make_section: Make) -> None:
    text = put_section(None, make_section("First"), PATH)
    mine = text + "\n\nMINE = 1\n"
    both = put_section(mine, make_section("Second"), PATH)
    assert "MINE = 1" in both
    left = take_section(take_section(both, "First", PATH) or "", "Second", PATH)
    assert left is not None
    assert left.rstrip("\n").endswith("MINE = 1")
    assert parse_receipts(left) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* 2", "* 3"),
        ("#   speedup: 2.3149", "#   speedup: 9.9"),
        ("#   checksum: ", "#   checksum: 0"),
        ("# --- end of First ---", "# --- end ---"),
        ("# --- adaexplore: First ---", "# mine"),
    ],
)
def test_an_edited_section_is_neither_replaced_nor_removed(make_section: Make, old: str, new: str) -> None:
    text = put_section(None, make_section("First"), PATH)
    assert old in text
    edited = text.replace(old, new)
    for attempt in (
        lambda: put_section(edited, make_section("First"), PATH),
        lambda: take_section(edited, "First", PATH),
    ):
        with pytest.raises(UsageError, match=r"model_triton\.py: the section of First was edited"):
            attempt()
    assert take_section(put_section(edited, make_section("Second"), PATH), "Second", PATH) == edited


@pytest.mark.parametrize("foreign", ["x = 1\n", '"""About # adaexplore-sidecar: format 1"""\n'])
def test_a_foreign_file_is_neither_overwritten_nor_deleted(make_section: Make, foreign: str) -> None:
    with pytest.raises(UsageError, match="was not written by adaexplore"):
        put_section(foreign, make_section(), PATH)
    with pytest.raises(UsageError, match="was not written by adaexplore"):
        take_section(foreign, "RMSNorm", PATH)


def test_two_classes_cannot_share_a_decorator(make_section: Make) -> None:
    text = put_section(None, make_section("RMSNorm"), PATH)
    with pytest.raises(UsageError, match="triton_rms_norm"):
        put_section(text, make_section("RmsNorm"), PATH)


def test_a_file_name_cannot_break_the_header(make_section: Make) -> None:
    ast.parse(put_section(None, make_section(), Path('a"""\\N.py')))
