"""Every store keeps the contract in ``adaexplore.store.store``."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.core.store.writer import make_run, make_step

from adaexplore.errors import RunLockedError, UsageError
from adaexplore.model.evaluation import Correctness, Evaluation, EvaluationStatus
from adaexplore.model.run import RunId, RunOutcome
from adaexplore.store.in_memory import InMemoryStore
from adaexplore.store.sqlite import SqliteStore
from adaexplore.store.store import Store

STORES: dict[str, Callable[[Path], Store]] = {
    "in_memory": lambda _: InMemoryStore(),
    "sqlite": SqliteStore,
}
A, NOBODY = RunId("a"), RunId("nobody")
FINAL = Evaluation(
    EvaluationStatus.PASSED, "measure", correctness=Correctness("interpreter", 3, 1e-7, 1e-6, 1e-7, 1e-6)
)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = STORES[request.param](tmp_path)
    yield store
    store.close()


def test_a_run_and_its_steps_come_back_equal(store: Store) -> None:
    run, steps = make_run("a"), tuple(make_step("a", step) for step in (1, 2, 3))
    store.create_run(run)
    for record in steps:
        store.add_step(record)
    assert store.get_run("a") == run
    assert store.steps(A) == steps


def test_a_run_has_no_steps_at_first(store: Store) -> None:
    store.create_run(make_run("a"))
    assert store.steps(A) == ()


def test_a_run_id_is_used_once(store: Store) -> None:
    store.create_run(make_run("a"))
    with pytest.raises(ValueError, match="there is a run a"):
        store.create_run(make_run("a", path="/other.py"))
    assert store.list_runs() == (make_run("a"),)


@pytest.mark.parametrize("worked_on", [{"outcome": RunOutcome.FAILED}, {"best_step": 1}, {"final": FINAL}])
def test_only_a_new_run_is_created(store: Store, worked_on: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not new"):
        store.create_run(replace(make_run("a"), **worked_on))  # type: ignore[arg-type]
    assert store.list_runs() == ()


@pytest.mark.parametrize(
    "record",
    [make_step("a", 1, "new"), make_step("a", 2, "new"), make_step("a", 4, "new"), make_step("a", 3, "c1")],
    ids=["first step again", "last step again", "gap", "candidate again"],
)
def test_steps_follow_each_other_and_candidates_do_not_repeat(store: Store, record: object) -> None:
    store.create_run(make_run("a"))
    steps = (make_step("a", 1), make_step("a", 2))
    for step in steps:
        store.add_step(step)
    with pytest.raises(ValueError, match="run a"):
        store.add_step(record)  # type: ignore[arg-type]
    assert store.steps(A) == steps
    store.add_step(make_step("a", 3))


def test_the_same_candidate_may_be_in_two_runs(store: Store) -> None:
    for run_id in ("a", "b"):
        store.create_run(make_run(run_id))
        store.add_step(make_step(run_id, 1))
    assert store.steps(A) == (make_step("a", 1),)
    assert store.steps(RunId("b")) == (make_step("b", 1),)


def test_a_finished_run_says_how_it_ended(store: Store) -> None:
    store.create_run(make_run("a"))
    store.add_step(make_step("a", 1))
    store.finish_run(A, RunOutcome.VERIFIED, 12.5, 1, FINAL)
    finished = replace(make_run("a"), outcome=RunOutcome.VERIFIED, seconds=12.5, best_step=1, final=FINAL)
    assert store.get_run("a") == finished
    store.finish_run(A, RunOutcome.FAILED, 13.0, None, None)
    assert store.get_run("a") == replace(make_run("a"), outcome=RunOutcome.FAILED, seconds=13.0)


def test_a_run_ends_with_a_step_that_it_has_and_not_open(store: Store) -> None:
    store.create_run(make_run("a"))
    store.add_step(make_step("a", 1))
    with pytest.raises(ValueError, match="no step 2"):
        store.finish_run(A, RunOutcome.VERIFIED, 1.0, 2, FINAL)
    with pytest.raises(ValueError, match="open"):
        store.finish_run(A, RunOutcome.OPEN, 1.0, None, None)
    assert store.get_run("a") == make_run("a")


def test_a_reopened_run_goes_on_from_its_steps(store: Store) -> None:
    store.create_run(make_run("a"))
    store.add_step(make_step("a", 1))
    store.finish_run(A, RunOutcome.CANCELLED, 9.0, 1, FINAL)
    reopened = store.reopen(A)
    assert reopened == store.get_run("a") == replace(make_run("a"), seconds=9.0)
    more = store.reopen(A, steps=99)
    assert more == store.get_run("a")
    assert more.settings == replace(make_run("a").settings, steps=99)
    store.add_step(make_step("a", 2))
    assert len(store.steps(A)) == 2


def test_a_run_is_found_by_a_prefix_that_is_its_own(store: Store) -> None:
    for run_id in ("abc", "abd", "ab", "x_%"):
        store.create_run(make_run(run_id))
    assert store.get_run("abc").id == "abc"
    assert store.get_run("ab").id == "ab"  # whole ids win
    assert store.get_run("x").id == "x_%"
    for ambiguous_or_unknown in ("a", "", "abcd", "_", "%"):
        with pytest.raises(UsageError) as caught:
            store.get_run(ambiguous_or_unknown)
        assert caught.value.details["run_id"] == ambiguous_or_unknown


@pytest.mark.parametrize("no_prefix", ["", "_", "%", "a", "B", "bb"])
def test_what_is_no_prefix_of_the_only_run_does_not_find_it(store: Store, no_prefix: str) -> None:
    store.create_run(make_run("b"))
    with pytest.raises(UsageError):
        store.get_run(no_prefix)


def test_runs_are_listed_newest_first(store: Store) -> None:
    store.create_run(make_run("a", "2026-01-02T00:00:00Z"))
    store.create_run(make_run("b", "2026-01-03T00:00:00Z", name="Other"))
    store.create_run(make_run("c", "2026-01-01T00:00:00Z", path="/q.py"))
    store.create_run(make_run("d", "2026-01-02T00:00:00Z"))
    assert [run.id for run in store.list_runs()] == ["b", "d", "a", "c"]
    assert [run.id for run in store.runs_for("/p/m.py", "Norm")] == ["d", "a"]
    assert store.runs_for("/p/m.py", "Nor") == ()


def test_an_unknown_run_is_wrong_use(store: Store) -> None:
    store.create_run(make_run("nobody-else"))
    calls: list[Callable[[], object]] = [
        lambda: store.add_step(make_step("nobody", 1)),
        lambda: store.finish_run(NOBODY, RunOutcome.FAILED, 1.0, None, None),
        lambda: store.reopen(NOBODY),
        lambda: store.steps(NOBODY),
    ]
    for call in calls:
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.details["run_id"] == "nobody"
    assert store.steps(RunId("nobody-else")) == ()


def test_a_run_has_one_owner_at_a_time(store: Store) -> None:
    assert not store.run_is_active(A)
    with store.lock_run(A):
        assert store.run_is_active(A)
        assert not store.run_is_active(RunId("b"))
        with pytest.raises(RunLockedError) as caught, store.lock_run(A):
            pass
        assert caught.value.details["run_id"] == "a"
    assert not store.run_is_active(A)


def test_a_lock_ends_with_an_error_too_and_lets_it_through(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.lock_run(A):
        raise ZeroDivisionError
    with store.lock_run(A):
        pass
