"""What only the store on disk does: files, faults, schema versions."""

import sqlite3
import threading
from pathlib import Path

import pytest

from adaexplore.errors import RunLockedError, SchemaVersionError, StoreUnwritableError
from adaexplore.model.run import RunId
from adaexplore.store.sqlite import FILE_NAME, SqliteStore, migrations

from .writer import make_run, make_step


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "not" / "there" / "yet"


def test_a_second_store_in_the_same_folder_sees_everything(data_dir: Path) -> None:
    first, second = SqliteStore(data_dir), SqliteStore(data_dir)
    first.create_run(make_run("a"))
    first.add_step(make_step("a", 1))
    assert second.get_run("a") == make_run("a")
    assert second.steps(RunId("a")) == (make_step("a", 1),)
    first.close()
    second.close()


def test_the_store_syncs_each_commit(data_dir: Path) -> None:
    store = SqliteStore(data_dir)
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    store.close()


def test_steps_cannot_be_changed_or_removed_by_anybody(data_dir: Path) -> None:
    store = SqliteStore(data_dir)
    store.create_run(make_run("a"))
    store.add_step(make_step("a", 1))
    store.close()
    db = sqlite3.connect(data_dir / FILE_NAME)
    for statement in ("UPDATE steps SET seconds = 0", "DELETE FROM steps"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(statement)
    db.close()


def test_a_file_of_a_newer_program_is_refused_and_left_alone(data_dir: Path) -> None:
    SqliteStore(data_dir).close()
    newer = len(migrations()) + 1
    _pragma(data_dir, f"user_version = {newer}")
    before = (data_dir / FILE_NAME).read_bytes()
    with pytest.raises(SchemaVersionError) as caught:
        SqliteStore(data_dir)
    assert caught.value.details == {"path": str(data_dir / FILE_NAME), "found": newer, "known": len(migrations())}
    assert (data_dir / FILE_NAME).read_bytes() == before


def test_opening_again_applies_no_migration_twice(data_dir: Path) -> None:
    SqliteStore(data_dir).close()
    SqliteStore(data_dir).close()
    db = sqlite3.connect(data_dir / FILE_NAME)
    assert db.execute("PRAGMA user_version").fetchone() == (len(migrations()),)
    db.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(data_dir: Path) -> None:
    data_dir.mkdir(parents=True)
    (data_dir / FILE_NAME).write_text("my notes, " * 100)
    with pytest.raises(StoreUnwritableError) as caught:
        SqliteStore(data_dir)
    assert caught.value.details["path"] == str(data_dir / FILE_NAME)
    assert "Move the file" in caught.value.hint
    assert (data_dir / FILE_NAME).read_text() == "my notes, " * 100


def test_a_database_of_another_program_is_refused_and_left_alone(data_dir: Path) -> None:
    data_dir.mkdir(parents=True)
    db = sqlite3.connect(data_dir / FILE_NAME)
    db.execute("CREATE TABLE runs (kilometres REAL)")
    db.commit()
    db.close()
    with pytest.raises(StoreUnwritableError):
        SqliteStore(data_dir)
    db = sqlite3.connect(data_dir / FILE_NAME)
    assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("runs",)]
    db.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritableError) as caught:
        SqliteStore(tmp_path / "file" / "data")
    assert caught.value.details == {
        "path": str(tmp_path / "file" / "data" / FILE_NAME),
        "reason": "Not a directory",
    }


def test_a_folder_in_the_place_of_the_file_is_named(data_dir: Path) -> None:
    (data_dir / FILE_NAME).mkdir(parents=True)
    with pytest.raises(StoreUnwritableError) as caught:
        SqliteStore(data_dir)
    assert caught.value.details["path"] == str(data_dir / FILE_NAME)


def test_a_full_disk_loses_nothing_that_was_acknowledged(data_dir: Path) -> None:
    store = SqliteStore(data_dir)
    store.create_run(make_run("a"))
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 4}")  # SQLite then reports a full disk
    acknowledged: list[int] = []
    with pytest.raises(StoreUnwritableError) as caught:
        _add_steps(store, acknowledged)
    assert caught.value.details["reason"] == "database or disk is full"
    assert [step.step for step in store.steps(RunId("a"))] == acknowledged != []
    store._db.execute("PRAGMA max_page_count = 1000000")  # somebody made room
    store.add_step(make_step("a", len(acknowledged) + 1))
    assert len(store.steps(RunId("a"))) == len(acknowledged) + 1
    store.close()


def test_a_store_that_stays_locked_is_an_error_not_a_hang(data_dir: Path) -> None:
    store = SqliteStore(data_dir)
    store._db.execute("PRAGMA busy_timeout = 50")  # milliseconds, instead of the 30 s
    other = sqlite3.connect(data_dir / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnwritableError) as caught:
        store.create_run(make_run("a"))
    assert caught.value.details["reason"] == "database is locked"
    other.execute("ROLLBACK")
    store.create_run(make_run("a"))
    other.close()
    store.close()


def test_one_store_serves_many_threads(data_dir: Path) -> None:
    store = SqliteStore(data_dir)

    def work(run_id: str) -> None:
        store.create_run(make_run(run_id))
        for step in range(1, 11):
            store.add_step(make_step(run_id, step))
            assert len(store.steps(RunId(run_id))) == step

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {run.id: len(store.steps(run.id)) for run in store.list_runs()} == dict.fromkeys("abcd", 10)
    store.close()


def test_a_lock_file_left_by_a_dead_process_locks_nothing(data_dir: Path) -> None:
    store = SqliteStore(data_dir)
    (data_dir / "locks" / "a.lock").write_text("1")  # its pid lives, and means nothing
    assert not store.run_is_active(RunId("a"))
    with store.lock_run(RunId("a")):
        assert store.run_is_active(RunId("a"))
    store.close()


def test_two_stores_of_one_process_exclude_each_other(data_dir: Path) -> None:
    first, second = SqliteStore(data_dir), SqliteStore(data_dir)
    with first.lock_run(RunId("a")), pytest.raises(RunLockedError), second.lock_run(RunId("a")):
        pass
    with second.lock_run(RunId("a")):
        assert first.run_is_active(RunId("a"))
    first.close()
    second.close()


def test_asking_whether_a_run_is_active_never_keeps_its_owner_out(data_dir: Path) -> None:
    owner, observer = SqliteStore(data_dir), SqliteStore(data_dir)
    done = threading.Event()

    def observe() -> None:
        while not done.is_set():
            observer.run_is_active(RunId("a"))

    thread = threading.Thread(target=observe)
    thread.start()
    try:
        for _ in range(500):
            with owner.lock_run(RunId("a")):
                pass
    finally:
        done.set()
        thread.join()
    owner.close()
    observer.close()


def _pragma(data_dir: Path, pragma: str) -> None:
    db = sqlite3.connect(data_dir / FILE_NAME)
    db.execute(f"PRAGMA {pragma}")
    db.close()


def _add_steps(store: SqliteStore, acknowledged: list[int]) -> None:
    for step in range(1, 10_000):
        store.add_step(make_step("a", step))
        acknowledged.append(step)
