"""Every invariant in ARCHITECTURE.md names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_INVARIANT = re.compile(r"^- \*\*(?P<text>.+?)\*\*(?P<rest>.*)$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/.-]+\.py)::(\w+)`")
_CONTRACT = re.compile(r"`lint-imports: ([\w-]+)`")


def problems(text: str, root: Path) -> list[str]:
    """Give one sentence for each invariant that does not end in ``— `tests/path.py::test_name```.

    Several may follow each other. An import contract counts as well, as ``— `lint-imports: its-id```.
    """
    found = []
    for invariant in _INVARIANT.finditer(_section(text)):
        _, dash, proof = invariant["rest"].partition("—")
        tests, contracts = _TEST.findall(proof), _CONTRACT.findall(proof)
        if not dash or not (tests or contracts):
            found.append(f"names no test: {invariant['text']}")
        found += [f"no test {path}::{name}" for path, name in tests if name not in _functions(root / path)]
        found += [f"no contract {name}" for name in contracts if not _has_contract(root, name)]
    return found


def invariants(text: str) -> int:
    return len(_INVARIANT.findall(_section(text)))


def _section(text: str) -> str:
    """Give the text below the heading that names invariants, up to the next heading as high."""
    match = re.search(r"^(#+) [^\n]*[Ii]nvariants[^\n]*\n(.*?)(?=^#{1,2} |\Z)", text, re.MULTILINE | re.DOTALL)
    return "" if match is None else match[2]


def _functions(path: Path) -> set[str]:
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _has_contract(root: Path, name: str) -> bool:
    return f'id = "{name}"' in (root / "pyproject.toml").read_text(encoding="utf-8")


def test_every_invariant_names_an_existing_test() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert invariants(text) > 0, "no invariants found: a heading with that word, then `- **Invariant** — `tests/…``"
    assert problems(text, ROOT) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- **It holds.** — `tests/test_a.py::test_it`", []),
        ("- **It holds**, for a reason — `tests/test_a.py::test_it`, `lint-imports: layers`", []),
        ("- **It holds.** — `lint-imports: layers`", []),
        ("- **It holds.** — `lint-imports: other`", ["no contract other"]),
        ("- **It holds.** — `tests/test_a.py::test_other`", ["no test tests/test_a.py::test_other"]),
        ("- **It holds.** — `tests/test_b.py::test_it`", ["no test tests/test_b.py::test_it"]),
        ("- **It holds.** — believe me", ["names no test: It holds."]),
        ("- **It holds.**", ["names no test: It holds."]),
    ],
)
def test_the_check_sees_what_is_wrong(tmp_path: Path, line: str, expected: list[str]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("def test_it(): ...\n")
    (tmp_path / "pyproject.toml").write_text('id = "layers"\n')
    text = f"# A\n- **Not one**\n## Invariants\n\n{line}\n\n## Code\n- **Nor this**\n"
    assert invariants(text) == 1
    assert problems(text, tmp_path) == expected
