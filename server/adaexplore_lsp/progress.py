"""A job's report in the editor: work-done progress, then one short message."""

from __future__ import annotations

import asyncio
import logging
import uuid

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from adaexplore_lsp import messages
from adaexplore_lsp.jobs import Ending, JobState

INTERVAL_SECONDS = 0.25
"""Least time between two reports."""
CREATE_SECONDS = 5.0
"""How long the end waits for an editor that has not yet said yes to the progress."""

logger = logging.getLogger(__name__)


class WorkDoneReport:
    """Shows one job. The token is begun only after the editor took it, and ended exactly once if it was begun."""

    def __init__(self, server: LanguageServer, name: str) -> None:
        self._server = server
        self._name = name
        self.token = uuid.uuid4().hex
        """A string: some editors refuse numbers."""
        self._state = JobState()
        self._begun = False
        self._ended = False
        self._next = 0.0
        self._flush: asyncio.TimerHandle | None = None
        self._created: asyncio.Task[None] | None = None
        window = server.client_capabilities.window
        if window is not None and window.work_done_progress:
            self._created = asyncio.create_task(self._create())

    def update(self, state: JobState) -> None:
        """Show ``state`` now, or with the next report that is due."""
        self._state = state
        if self._begun and not self._ended and self._flush is None:
            delay = self._next - asyncio.get_running_loop().time()
            if delay <= 0:
                self._send()
            else:
                self._flush = asyncio.get_running_loop().call_later(delay, self._send)

    async def end(self, ending: Ending) -> None:
        """End the progress, forget its token, and tell the user."""
        if self._created is not None:
            await asyncio.wait([self._created], timeout=CREATE_SECONDS)
        self._ended = True
        if self._flush is not None:
            self._flush.cancel()
        if self._begun:
            end = types.WorkDoneProgressEnd(message=messages.ending(ending))
            self._server.work_done_progress.end(self.token, end)
        self._server.work_done_progress.tokens.pop(self.token, None)
        kind = types.MessageType.Error if messages.is_failure(ending) else types.MessageType.Info
        notice = types.ShowMessageParams(type=kind, message=messages.notice(self._name, ending))
        self._server.window_show_message(notice)

    async def _create(self) -> None:
        progress = self._server.work_done_progress
        try:
            await progress.create_async(self.token)
        except JsonRpcException as error:
            logger.warning("the editor refused a progress: %s", error)
            return
        if self._ended:
            progress.tokens.pop(self.token, None)
            return
        self._begun = True
        begin = types.WorkDoneProgressBegin(
            title=f"Optimize {self._name}",
            cancellable=True,
            percentage=self._state.percentage,
            message=messages.progress(self._state),
        )
        progress.begin(self.token, begin)
        self._next = asyncio.get_running_loop().time() + INTERVAL_SECONDS

    def _send(self) -> None:
        self._flush = None
        self._next = asyncio.get_running_loop().time() + INTERVAL_SECONDS
        report = types.WorkDoneProgressReport(
            cancellable=True, percentage=self._state.percentage, message=messages.progress(self._state)
        )
        self._server.work_done_progress.report(self.token, report)
