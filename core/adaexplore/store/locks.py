"""Locks that end with their process, however it ends: ``flock`` on files."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PROBE_RETRIES, _PROBE_SECONDS = 10, 0.02
""":func:`is_locked` holds a lock for an instant; so long is waited before a lock counts as somebody's."""


class LockedError(Exception):
    """The lock is held; ``pid`` is the holder's process id as text, empty where it is not known."""

    def __init__(self, pid: str) -> None:
        super().__init__(pid)
        self.pid = pid


@contextmanager
def waiting_lock(path: Path) -> Iterator[None]:
    """Hold the lock at ``path``; wait for it as long as it takes.

    Raises:
        OSError: The file cannot be made.
    """
    with _open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock at ``path``, with our process id in the file.

    The file stays behind, empty: removing it would let two processes hold locks on two files of one name. A child
    that was forked without exec would hold the lock too; this package starts children by exec only, which closes it.

    Raises:
        LockedError: Another process, or another holder in this one, has it.
        OSError: The file cannot be made or written.
    """
    with _open(path) as file:
        for attempt in range(_PROBE_RETRIES + 1):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == _PROBE_RETRIES:
                    file.seek(0)
                    raise LockedError(file.read().strip()) from None
                time.sleep(_PROBE_SECONDS)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def is_locked(path: Path) -> bool:
    """Say whether a live process holds the lock at ``path``. Makes no file."""
    try:
        file = path.open(encoding="ascii")
    except FileNotFoundError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _open(path: Path) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("a+", encoding="ascii")
