import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from pygls.exceptions import JsonRpcException

from adaexplore_lsp import progress as progress_module
from adaexplore_lsp.jobs import Ending, JobState
from adaexplore_lsp.progress import WorkDoneReport

CANCELLED = Ending(None, True, -9, Path("/log"))


class RecordedProgress:
    """pygls' helper, as far as a report uses it."""

    def __init__(self, answer):
        self.tokens = {}
        self.sent = []
        self._answer = answer

    async def create_async(self, token):
        await self._answer()
        self.tokens[token] = None

    def begin(self, token, value):
        self._note("begin", token, value)

    def report(self, token, value):
        self._note("report", token, value)

    def end(self, token, value):
        self._note("end", token, value)

    def _note(self, kind, token, value):
        assert isinstance(token, str)
        self.sent.append((kind, value.message, asyncio.get_running_loop().time()))


class RecordedServer:
    def __init__(self, answer, supported=True):
        self.client_capabilities = SimpleNamespace(window=SimpleNamespace(work_done_progress=supported))
        self.work_done_progress = RecordedProgress(answer)
        self.shown = []

    def window_show_message(self, params):
        self.shown.append(params.message)


async def at_once():
    await asyncio.sleep(0)


async def refused():
    raise JsonRpcException("no")


async def never():
    await asyncio.Event().wait()


async def late():
    await asyncio.sleep(0.2)


def kinds(server):
    return [kind for kind, _, _ in server.work_done_progress.sent]


def test_updates_are_spaced_and_the_last_one_is_shown():
    async def main():
        server = RecordedServer(at_once)
        report = WorkDoneReport(server, "Norm")
        await asyncio.sleep(0.01)
        for step in range(1, 41):
            report.update(JobState(step, 100))
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        sent = list(server.work_done_progress.sent)
        await report.end(CANCELLED)
        return server, sent

    server, sent = asyncio.run(main())
    assert sent[-1][1] == "40/100"
    times = [time for _, _, time in sent]
    assert len(times) > 3
    assert all(later - earlier > 0.2 for earlier, later in zip(times, times[1:], strict=False))
    assert kinds(server)[-1] == "end"


def test_no_report_follows_the_end_and_the_token_is_forgotten():
    async def main():
        server = RecordedServer(at_once)
        report = WorkDoneReport(server, "Norm")
        await asyncio.sleep(0.01)
        report.update(JobState(1, 3))  # waits for its turn when the end comes
        await report.end(CANCELLED)
        report.update(JobState(2, 3))
        await asyncio.sleep(0.4)
        return server

    server = asyncio.run(main())
    assert kinds(server) == ["begin", "end"]
    assert server.work_done_progress.tokens == {}
    assert server.shown == ["AdaExplore: Norm: cancelled"]


def test_an_update_after_the_end_is_not_sent():
    async def main():
        server = RecordedServer(at_once)
        report = WorkDoneReport(server, "Norm")
        await asyncio.sleep(0.3)  # the next report would be due
        await report.end(CANCELLED)
        report.update(JobState(2, 3))
        return server

    assert kinds(asyncio.run(main())) == ["begin", "end"]


def test_an_answer_that_comes_with_the_end_still_gives_both():
    async def main():
        server = RecordedServer(late)
        await WorkDoneReport(server, "Norm").end(CANCELLED)
        return server

    assert kinds(asyncio.run(main())) == ["begin", "end"]


@pytest.mark.parametrize("answer", [refused, never, late])
def test_without_an_answer_in_time_nothing_is_begun(answer, monkeypatch):
    monkeypatch.setattr(progress_module, "CREATE_SECONDS", 0.05)

    async def main():
        server = RecordedServer(answer)
        report = WorkDoneReport(server, "Norm")
        await asyncio.sleep(0.01)
        report.update(JobState(1, 3))
        await report.end(CANCELLED)
        await asyncio.sleep(0.3)
        return server

    server = asyncio.run(main())
    assert kinds(server) == []
    assert server.work_done_progress.tokens == {}
    assert len(server.shown) == 1


def test_a_client_without_progress_is_told_the_end_only():
    async def main():
        server = RecordedServer(at_once, supported=False)
        report = WorkDoneReport(server, "Norm")
        report.update(JobState(1, 3))
        await report.end(CANCELLED)
        return server

    server = asyncio.run(main())
    assert kinds(server) == []
    assert server.shown == ["AdaExplore: Norm: cancelled"]
