import dataclasses
from pathlib import Path

import pytest

from adaexplore.model.events import RunFailed, RunFinished
from adaexplore_lsp import messages
from adaexplore_lsp.jobs import Ending, JobState


def finished(outcome, evaluation, best=True):
    candidate = object() if best else None
    return RunFinished("r", outcome, "said the engine", 3, 1.0, candidate, evaluation)


def ending(event, cancelled=False, returncode=0):
    return Ending(event, cancelled, returncode, Path("/log"))


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (JobState(), "capturing the module"),
        (JobState(0, 30), "0/30"),
        (JobState(12, 30, 1.84), "12/30 · best 1.84x"),
        (JobState(30, 30, 123.4), "30/30 · best 123x"),
    ],
)
def test_progress(state, text):
    assert messages.progress(state) == text


def test_percentages_stay_between_0_and_100():
    assert [JobState(step, 3).percentage for step in (0, 1, 3, 5)] == [0, 33, 100, 100]
    assert JobState(5, 0).percentage == 0


def test_endings(make):
    without_compile = dataclasses.replace(
        make.measured, measurement=dataclasses.replace(make.measured.measurement, compiled=None)
    )
    cases = [
        (ending(finished("improved", make.measured)), "2.30x faster than eager, 1.20x than torch.compile"),
        (ending(finished("improved", without_compile)), "2.30x faster than eager"),
        (ending(finished("verified", make.verified)), "verified, not measured: no GPU"),
        (ending(finished("nothing_better", make.measured)), "nothing better found"),
        (ending(finished("failed", None, best=False)), "said the engine"),
        (ending(finished("cancelled", make.verified), True), "cancelled; best so far: verified, not measured: no GPU"),
        (ending(finished("cancelled", None, best=False), True), "cancelled"),
        (ending(RunFailed("X", "no such class", "", 2)), "no such class"),
        (ending(None, True, -9), "cancelled"),
        (ending(None, False, -9), "the search was killed (signal 9)"),
        (ending(None, False, 3), "the search ended without a result (exit code 3)"),
    ]
    for how, text in cases:
        assert messages.ending(how) == text


def test_only_a_search_that_could_not_work_is_an_error(make):
    assert not messages.is_failure(ending(finished("failed", None, best=False)))
    assert not messages.is_failure(ending(None, cancelled=True))
    assert not messages.is_failure(ending(RunFailed("X", "interrupted", "", 1), cancelled=True))
    assert messages.is_failure(ending(RunFailed("X", "no such class", "", 2)))
    assert messages.is_failure(ending(None))


def test_a_notice_says_what_to_do():
    failed = ending(RunFailed("X", "a.py: no class B.", "Found: A.", 2))
    assert messages.notice("B", failed) == "AdaExplore: B: a.py: no class B. Found: A."
    assert messages.notice("B", ending(None, returncode=1)).endswith("(exit code 1). See /log")
