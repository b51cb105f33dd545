"""Documents that come from code are up to date, and say what the code says."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.repo.generate import PAGES, ROOT, store_page

from adaexplore.store.sqlite import migrations


@pytest.mark.parametrize(("name", "page"), PAGES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_page_is_up_to_date(name: str, page: object) -> None:
    assert callable(page)
    assert (ROOT / name).read_text(encoding="utf-8") == page(), "run `just gen`"


def test_every_column_of_the_store_is_described() -> None:
    page = store_page()
    db = sqlite3.connect(":memory:")
    for script in migrations():
        db.executescript(script)
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = [row[1] for table in tables for row in db.execute(f"PRAGMA table_info({table})")]
    db.close()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    assert [row[1].strip(" `") for row in rows] == columns
    undescribed = {row[1].strip(" `") for row in rows if not row[4].strip()}
    assert undescribed <= {"id", "run_id", "class_name"}  # their names say it all


@pytest.mark.slow
def test_the_check_fails_on_a_page_that_was_edited(tmp_path: Path) -> None:
    # A copy of the generator believes that its own folder is the repository.
    generator = tmp_path / "tests" / "repo" / "generate.py"
    generator.parent.mkdir(parents=True)
    generator.write_text((ROOT / "tests" / "repo" / "generate.py").read_text(encoding="utf-8"), encoding="utf-8")

    def generate(*arguments: str) -> int:
        return subprocess.run([sys.executable, str(generator), *arguments], check=False, capture_output=True).returncode

    page = tmp_path / "core" / "docs" / "store.md"
    assert generate("--check") == 1
    assert not page.exists()
    assert generate() == 0
    assert generate("--check") == 0
    page.write_text(page.read_text(encoding="utf-8") + "edited\n", encoding="utf-8")
    assert generate("--check") == 1
