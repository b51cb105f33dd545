"""Files stay small enough to be read at once."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT, HARD_STOP = 400, 600
"""Lines of a Python file; STYLE 2.12."""
EXCEPTIONS: dict[str, str] = {}
"""Path to reason, for a file between the two."""


def line_counts() -> dict[str, int]:
    return {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for folder in ("core", "server", "tests", "editors")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "catalog" not in path.parts
    }


def test_files_are_short() -> None:
    long = {path: lines for path, lines in line_counts().items() if lines > LIMIT and path not in EXCEPTIONS}
    assert not long, f"split, or give a reason in EXCEPTIONS: {long}"


def test_no_reason_allows_more_than_the_hard_stop() -> None:
    too_long = {path: lines for path, lines in line_counts().items() if lines > HARD_STOP}
    assert not too_long


def test_exceptions_are_needed() -> None:
    counts = line_counts()
    assert [path for path in EXCEPTIONS if counts.get(path, 0) <= LIMIT] == []
    assert len(counts) > 10, "the folders moved"
