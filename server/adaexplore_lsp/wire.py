"""JSON-RPC as the specification wants it, where pygls differs."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcServerNotInitialized
from pygls.protocol import LanguageServerProtocol


class AdaExploreProtocol(LanguageServerProtocol):
    """pygls' protocol with replies where it is silent, and without tracebacks in them."""

    @property
    def is_shut_down(self) -> bool:
        """Whether the client has asked for the shutdown, after which it may say ``exit``."""
        return bool(self._shutdown)

    def _send_response(
        self, msg_id: str | int, result: Any | None = None, error: types.ResponseError | None = None
    ) -> None:
        if error is not None:
            # pygls puts the traceback here, with local paths; it is in the log.
            error.data = None
        super()._send_response(msg_id, result, error)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Build the message; one that does not fit is answered, so that no client waits for ever."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def handle_message(self, message: Any) -> None:
        """Hand the message on, if this is a time for it."""
        method = getattr(message, "method", None)
        msg_id = getattr(message, "id", None)
        if method is not None and msg_id is not None:
            refusal = self._refusal(method)
            if refusal is not None:
                self._send_response(msg_id, error=refusal.to_response_error())
                return
        super().handle_message(message)

    def _refusal(self, method: str) -> JsonRpcException | None:
        if self._shutdown:
            return JsonRpcInvalidRequest("the server is shutting down")
        if self._workspace is None and method != types.INITIALIZE:
            return JsonRpcServerNotInitialized("initialize comes first")
        return None
