import dataclasses
import os

import pytest

from adaexplore.errors import StoreError
from adaexplore.model.run import RunOutcome
from adaexplore.store.sqlite import SqliteStore
from adaexplore_lsp.jobs import Target
from adaexplore_lsp.results import Result, Results, present

TARGET = Target("/m.py", "Norm")


def test_no_store_is_no_result_and_makes_none(tmp_path):
    assert Results().of(tmp_path / "absent", TARGET) == ()
    assert not (tmp_path / "absent").exists()


def test_ended_runs_are_given_newest_first(make, store):
    old = make.run("/m.py", run_id="old", created_at="2026-01-01T00:00:00Z")
    new = make.run("/m.py", run_id="new")
    others = [
        make.run("/m.py", run_id="open", outcome=RunOutcome.OPEN, best_step=None, final=None),
        make.run("/other.py", run_id="file"),
        make.run("/m.py", name="Bare", run_id="class"),
    ]
    data_dir = store(old, new, *others)
    assert [result.run.id for result in Results().of(data_dir, TARGET)] == ["new", "old"]


def test_results_are_found_under_both_names_of_a_linked_file(make, store, tmp_path):
    (tmp_path / "real.py").touch()
    (tmp_path / "link.py").symlink_to(tmp_path / "real.py")
    by_link = make.run(tmp_path / "link.py", run_id="link", created_at="2026-01-01T00:00:00Z")
    by_name = make.run(tmp_path / "real.py", run_id="real", created_at="2026-01-02T00:00:00Z")
    data_dir = store(by_link, by_name)
    found = Results().of(data_dir, Target(str(tmp_path / "link.py"), "Norm"))
    assert [result.run.id for result in found] == ["real", "link"]


def test_a_change_of_the_store_is_seen_at_once(make, store):
    results = Results()
    data_dir = store(make.run("/m.py", run_id="r1"))
    assert len(results.of(data_dir, TARGET)) == 1
    store(make.run("/m.py", run_id="r2"))
    assert len(results.of(data_dir, TARGET)) == 2
    writer = SqliteStore(data_dir)  # stays open: the change is in the write-ahead log
    writer.create_run(make.run("/m.py", run_id="r3", outcome=RunOutcome.OPEN, best_step=None, final=None))
    writer.finish_run("r3", RunOutcome.FAILED, 1.0, None, None)
    assert len(results.of(data_dir, TARGET)) == 3
    writer.close()


def test_an_unchanged_store_is_read_once(make, store, monkeypatch):
    results = Results()
    data_dir = store(make.run("/m.py"))
    first = results.of(data_dir, TARGET)
    monkeypatch.setattr(SqliteStore, "runs_for", None)
    assert results.of(data_dir, TARGET) is first


def test_the_best_of_a_cancelled_run_is_its_step(make, store):
    data_dir = store(make.run("/m.py", outcome=RunOutcome.CANCELLED, final=None))
    (result,) = Results().of(data_dir, TARGET)
    assert result.evaluation == make.measured
    assert result.insertable
    assert Results().best(data_dir, result.run).candidate.id == "c1"


def test_a_store_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "adaexplore.sqlite3").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError):
        Results().of(tmp_path, TARGET)


def test_what_can_be_inserted(make):
    def insertable(outcome, evaluation, best_step=1):
        return Result(make.run("/m.py", outcome=outcome, best_step=best_step), evaluation).insertable

    slower = dataclasses.replace(
        make.measured,
        measurement=dataclasses.replace(make.measured.measurement, eager=make.measured.measurement.candidate),
    )
    assert insertable(RunOutcome.IMPROVED, make.measured)
    assert insertable(RunOutcome.VERIFIED, make.verified)
    assert insertable(RunOutcome.CANCELLED, make.verified)
    assert not insertable(RunOutcome.CANCELLED, slower)
    assert not insertable(RunOutcome.CANCELLED, None, None)
    assert not insertable(RunOutcome.NOTHING_BETTER, make.measured)
    assert not insertable(RunOutcome.FAILED, None, None)


def test_the_present_result_fits_the_text(make):
    run = make.run("/m.py")
    digest = run.task.source_hash
    good = Result(run, make.measured)
    newer = Result(make.run("/m.py", run_id="r2", outcome=RunOutcome.NOTHING_BETTER), make.measured)
    assert present((newer, good), digest) is good
    assert present((newer,), digest) is newer
    assert present((good,), "another") is None
    assert os.fspath(run.task.path) == "/m.py"
