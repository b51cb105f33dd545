"""The session: what is open, what runs, what the editor set."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import FeatureNotificationError, JsonRpcInternalError
from pygls.lsp.server import LanguageServer

from adaexplore import __version__
from adaexplore_lsp.documents import Document, Documents
from adaexplore_lsp.jobs import Jobs
from adaexplore_lsp.results import Results
from adaexplore_lsp.settings import ServerSettings
from adaexplore_lsp.wire import AdaExploreProtocol

if TYPE_CHECKING:
    from pygls.server import ServerErrors  # exists for type checkers only

SEARCH_COMMAND = (sys.executable, "-P", "-m", "adaexplore.cli")
"""``-P``: nothing in the user's folder takes the place of a library."""

logger = logging.getLogger(__name__)


class AdaExploreServer(LanguageServer):
    """One editor's session."""

    protocol: AdaExploreProtocol

    def __init__(self, search_command: Sequence[str] = SEARCH_COMMAND) -> None:
        super().__init__(
            "adaexplore-lsp",
            __version__,
            # Full texts: pygls' incremental updates split lines where LSP does not, and then differ from the editor.
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            protocol_cls=AdaExploreProtocol,
        )
        self.settings = self.initial_settings = ServerSettings()
        self.jobs = Jobs(search_command)
        self.documents = Documents()
        self.results = Results()

    def document(self, uri: str) -> Document | None:
        """Give the open file as it is now; None for what is no open file."""
        return self.documents.get(self.workspace, uri)

    def show_error(self, message: str) -> None:
        """Show one message, in answer to something the user did."""
        self.window_show_message(types.ShowMessageParams(type=types.MessageType.Error, message=message))

    def report_server_error(self, error: Exception, source: ServerErrors) -> None:
        """Log what has no reply of its own; pygls logged the rest, and nothing pops up."""
        if source is FeatureNotificationError and isinstance(error, JsonRpcInternalError):
            logger.error("%s\n%s", error, "".join((error.data or {}).get("traceback", ())))


def create_server(search_command: Sequence[str] = SEARCH_COMMAND) -> AdaExploreServer:
    """Give a server with all features.

    Args:
        search_command: What runs a search, instead of our command line; for tests.
    """
    from adaexplore_lsp.features import FEATURES  # here, because every feature is written for the class above

    server = AdaExploreServer(search_command)
    for feature in FEATURES:
        feature.register(server)
    return server
