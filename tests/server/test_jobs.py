import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from adaexplore.model.events import RunFailed, RunFinished, StepEvaluated
from adaexplore.model.task import Policy
from adaexplore_lsp import jobs as jobs_module
from adaexplore_lsp.jobs import EventReader, Jobs, JobState, Target, parse_event
from adaexplore_lsp.settings import ServerSettings

FAKE_SEARCH = Path(__file__).parent / "fake_search.py"
pytestmark = pytest.mark.slow


class RecordedReport:
    def __init__(self):
        self.states = []
        self.endings = []
        self.ended = asyncio.Event()
        self.moved = asyncio.Event()

    def update(self, state):
        assert not self.endings, "an update after the end"
        self.states.append(state)
        if state.step:
            self.moved.set()

    async def end(self, ending):
        self.endings.append(ending)
        self.ended.set()


def run_search(tmp_path, behaviour, act=None, settings=None):
    """Run the fake search to its end; `act(jobs, job, report)` may meddle once it is at work."""

    async def main():
        jobs = Jobs([sys.executable, str(FAKE_SEARCH), behaviour])
        report = RecordedReport()
        chosen = settings or ServerSettings(data_dir=tmp_path)
        job = await jobs.start(Target("/m.py", "Norm"), chosen, lambda _: report)
        assert jobs.find(Target("/m.py", "Norm")) is job
        if act is not None:
            await asyncio.wait_for(report.moved.wait(), 20)
            await act(jobs, job, report)
        await asyncio.wait_for(report.ended.wait(), 30)
        assert jobs.find(job.target) is None
        await asyncio.wait_for(job.exited, 20)
        await asyncio.sleep(0.3)  # what would come twice comes now
        assert len(report.endings) == 1
        return job, report

    return asyncio.run(main())


def test_a_search_reports_its_steps_and_ends_once(tmp_path):
    job, report = run_search(tmp_path, "success")
    assert [state.step for state in report.states] == [0, 1, 2, 3]
    assert report.states[-1] == JobState(3, 3, 1.3, "x=float32[8, 64]", "shapes in the # adaexplore: comment")
    assert isinstance(report.endings[0].event, RunFinished)
    assert job.events.parent == tmp_path / "jobs"
    assert job.log.read_text() == "the log\n"


def test_settings_become_options(tmp_path):
    settings = ServerSettings("/usr/bin/py thon", 7, 2.5, Policy.STRICT, tmp_path)
    job, _ = run_search(tmp_path, "arguments", settings=settings)
    arguments, data_dir = job.log.read_text().splitlines()[1:]
    assert json.loads(arguments) == [
        "optimize", "/m.py::Norm", "--json", "--steps", "7", "--seconds", "2.5", "--policy", "strict",
        "--python", "/usr/bin/py thon",
    ]  # fmt: skip
    assert data_dir == str(tmp_path)


def test_unset_settings_become_no_options(tmp_path):
    job, _ = run_search(tmp_path, "arguments")
    assert json.loads(job.log.read_text().splitlines()[1]) == ["optimize", "/m.py::Norm", "--json"]


def test_a_refusal_is_the_ending(tmp_path):
    _, report = run_search(tmp_path, "refuse")
    assert isinstance(report.endings[0].event, RunFailed)
    assert report.endings[0].event.hint == "Leave it out."


@pytest.mark.parametrize(("behaviour", "code"), [("nothing", 3), ("die", -9), ("cut", 1)])
def test_a_search_that_vanishes_ends_the_report(tmp_path, behaviour, code):
    _, report = run_search(tmp_path, behaviour)
    assert report.endings[0].event is None
    assert not report.endings[0].cancelled
    assert report.endings[0].returncode == code


def test_a_search_killed_from_outside_ends_the_report(tmp_path):
    async def kill(jobs, job, report):
        os.killpg(job.process.pid, signal.SIGKILL)

    _, report = run_search(tmp_path, "hang", kill)
    assert report.endings[0].returncode == -9


def test_cancel_lets_the_search_keep_its_best(tmp_path):
    async def cancel(jobs, job, report):
        jobs.cancel(job)
        await asyncio.sleep(0.1)
        jobs.cancel(job)  # twice does no harm

    _, report = run_search(tmp_path, "interruptible", cancel)
    assert report.endings[0].cancelled
    assert report.endings[0].event.outcome == "cancelled"


def test_cancel_kills_the_group_of_a_stubborn_search(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs_module, "GRACE_SECONDS", 0.2)

    async def cancel(jobs, job, report):
        jobs.cancel(job)

    job, report = run_search(tmp_path, "stubborn", cancel)
    assert report.endings[0].cancelled
    assert report.endings[0].event is None
    child = int(job.log.read_text().splitlines()[1])
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}/stat").exists() and " Z " not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < deadline, "the search's child is still there"
        time.sleep(0.05)


def test_a_second_start_gives_the_running_job(tmp_path):
    async def main():
        jobs = Jobs([sys.executable, str(FAKE_SEARCH), "interruptible"])
        settings, target, reports = ServerSettings(data_dir=tmp_path), Target("/m.py", "Norm"), []

        def make_report(_):
            reports.append(RecordedReport())
            return reports[-1]

        first, second = await asyncio.gather(*(jobs.start(target, settings, make_report) for _ in range(2)))
        assert first is second
        assert len(reports) == 1
        await asyncio.wait_for(reports[0].moved.wait(), 20)
        jobs.cancel(first)
        await asyncio.wait_for(reports[0].ended.wait(), 20)
        third = await jobs.start(target, settings, make_report)
        assert third is not first
        await asyncio.wait_for(reports[1].moved.wait(), 20)
        jobs.cancel(third)
        await asyncio.wait_for(reports[1].ended.wait(), 20)
        await asyncio.gather(first.exited, third.exited)

    asyncio.run(main())


def test_a_flood_of_events_does_not_stall_the_loop(tmp_path):
    async def main():
        jobs = Jobs([sys.executable, str(FAKE_SEARCH), "flood"])
        report = RecordedReport()
        job = await jobs.start(Target("/m.py", "Norm"), ServerSettings(data_dir=tmp_path), lambda _: report)
        worst = 0.0
        while not report.ended.is_set():
            before = time.perf_counter()
            await asyncio.sleep(0)
            worst = max(worst, time.perf_counter() - before)
        await job.exited
        return report, worst

    report, worst = asyncio.run(main())
    assert report.states[-1].step == 5000
    assert worst < 1.0, "one turn of the loop held all of the flood"


def test_a_search_that_cannot_start_leaves_no_job(tmp_path):
    async def main():
        jobs = Jobs([str(tmp_path / "absent")])
        target = Target("/m.py", "Norm")
        with pytest.raises(FileNotFoundError):
            await jobs.start(target, ServerSettings(data_dir=tmp_path), lambda _: RecordedReport())
        assert jobs.find(target) is None

    asyncio.run(main())


def test_old_logs_are_pruned(tmp_path):
    (tmp_path / "jobs").mkdir()
    for number in range(130):
        file = tmp_path / "jobs" / f"{number}.log"
        file.touch()
        os.utime(file, (number, number))
    run_search(tmp_path, "nothing")
    left = {file.name for file in (tmp_path / "jobs").iterdir()}
    assert len(left) == jobs_module.KEPT_LOGS + 2
    assert "129.log" in left
    assert "0.log" not in left


def test_events_are_read_line_by_line_as_they_come(tmp_path):
    file = tmp_path / "events"
    file.write_bytes(b"")
    reader = EventReader(file)
    line = json.dumps({
        "event": "run_failed", "error": "CaptureError", "message": "überall", "hint": "", "exit_code": 1,
    }, ensure_ascii=False).encode()  # fmt: skip
    assert reader.read() == []
    with file.open("ab") as out:
        for part in (line[:60], line[60:] + b"\n\n", b"garbage\n" + line + b"\n"):
            out.write(part)
            out.flush()
            events = reader.read()
            assert [event.message for event in events] == (["überall"] if b"\n" in part else [])


@pytest.mark.parametrize(
    "line", [b"", b"  ", b"[]", b"3", b'"x"', b'{"event": 3}', b'{"event": "run_failed"}', b"\xff"]
)
def test_what_is_no_event_is_none(line):
    assert parse_event(line) is None


def test_an_event_with_a_number_missing_is_still_one():
    event = parse_event(
        b'{"event": "step_evaluated", "run_id": "r", "step": 1, "steps": 2, "kind": "small", "candidate_id": "c",'
        b' "summary": "", "status": "incorrect", "stage": "compare", "detail": "off", "latency_ms": null,'
        b' "speedup": null, "best_speedup": null, "best_candidate_id": null}'
    )
    assert isinstance(event, StepEvaluated)
    assert event.best_speedup is None
