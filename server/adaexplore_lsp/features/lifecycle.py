"""Closing a file, cancelling from the progress, leaving."""

from __future__ import annotations

from lsprotocol import types

from adaexplore_lsp.progress import WorkDoneReport
from adaexplore_lsp.server import AdaExploreServer
from adaexplore_lsp.transport import hard_exit


def register(server: AdaExploreServer) -> None:
    """Follow the session's own messages."""

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def on_close(ls: AdaExploreServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.documents.forget(params.text_document.uri)

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def on_cancel(ls: AdaExploreServer, params: types.WorkDoneProgressCancelParams) -> None:
        for job in ls.jobs.running():
            if isinstance(job.report, WorkDoneReport) and job.report.token == params.token:
                ls.jobs.cancel(job)

    @server.feature(types.EXIT)
    def on_exit(ls: AdaExploreServer, _: None) -> None:
        hard_exit(0 if ls.protocol.is_shut_down else 1)
