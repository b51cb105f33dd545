"""The stdio transport: this process's standard output carries protocol messages and nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, NoReturn

from pygls.io_ import StdinAsyncReader, run_async
from pygls.lsp.server import LanguageServer

PARENT_POLL_SECONDS = 2.0
"""How often the editor's process is looked for, where it announced its id."""

logger = logging.getLogger(__name__)


class FdWriter:
    """Whole messages to a file descriptor, one at a time.

    pygls' own writer is torn where Python runs unbuffered: two threads' messages above a pipe's page
    interleave (measured: pygls 2.1.1, ``PYTHONUNBUFFERED=1``, 2026).
    """

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, True)
        self._fd = fd
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Write all of ``data``.

        Raises:
            BrokenPipeError: The client is gone.
        """
        view = memoryview(data)
        with self._lock:
            while view:
                view = view[os.write(self._fd, view) :]

    def close(self) -> None:
        """Do nothing: the descriptor lives as long as the process."""


def claim_stdio() -> tuple[BinaryIO, FdWriter]:
    """Take standard input and output for the protocol.

    Afterwards descriptor 1 is standard error and descriptor 0 is empty, so that no library and no child can
    write into the stream or read from it.
    """
    reader = os.fdopen(os.dup(0), "rb")
    writer = FdWriter(os.dup(1))
    os.dup2(2, 1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    sys.stdout = sys.stderr
    return reader, writer


def hard_exit(code: int) -> NoReturn:
    """End the process now: no thread, task or child is waited for, and searches go on."""
    logging.shutdown()
    os._exit(code)


def serve(server: LanguageServer, reader: BinaryIO, writer: FdWriter) -> NoReturn:
    """Answer messages until the client says ``exit``, closes the stream, or dies."""
    server.protocol.set_writer(writer)
    try:
        asyncio.run(_serve(server, reader))
    except (BrokenPipeError, KeyboardInterrupt):
        logger.info("the client is gone")
    hard_exit(1)


async def _serve(server: LanguageServer, reader: BinaryIO) -> None:
    watch = asyncio.create_task(_watch_parent(server))
    # A pool of its own: a reader that shares one goes deaf once the others hold all threads.
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="stdin")
    await run_async(
        stop_event=threading.Event(),
        reader=StdinAsyncReader(reader, executor),
        protocol=server.protocol,
        error_handler=server.report_server_error,
    )
    watch.cancel()
    hard_exit(1)


async def _watch_parent(server: LanguageServer) -> None:
    while True:
        await asyncio.sleep(PARENT_POLL_SECONDS)
        if server.process_id is not None and not _alive(server.process_id):
            logger.info("the editor (process %d) is gone", server.process_id)
            hard_exit(1)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
