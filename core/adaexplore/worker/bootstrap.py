"""Start a worker in any interpreter: put this package, and nothing else of ours, in reach of it.

Run as a script: ``bootstrap.py REPLY_FD LIFE_FD FOLDER``. The package's folder may sit in a ``site-packages`` full of
libraries whose versions would clash with the user's, so it is loaded by its place and never put on ``sys.path``. This
file must run in Python 3.6, too, so that one that is too old can say so.
"""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import sys

OLDEST_PYTHON = (3, 11)


def _end_group_with_parent(life_fd: int, folder: str) -> None:
    """Leave a small process in this group that kills the group and removes ``folder`` when the parent goes away.

    The parent alone holds the other end of ``life_fd`` and never writes to it. This works whatever the worker is busy
    with (a loop in C that holds the interpreter's lock), and reaches its children, too: ptxas, compile workers.
    """
    worker = os.getpid()
    if os.fork():
        os.close(life_fd)
        return
    os.dup2(life_fd, 0)
    os.closerange(1, max(life_fd, 64) + 1)  # an open end of the reply's pipe would hide the worker's death
    os.read(0, 1)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _refuse_old_python(reply_fd: int) -> None:
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return
    own, oldest = (".".join(map(str, version)) for version in (sys.version_info[:2], OLDEST_PYTHON))
    message = f"Python {own} is too old: choose an interpreter with Python {oldest} or newer"
    reply = {"id": json.loads(sys.stdin.readline())["id"], "ok": False, "fault": "environment", "message": message}
    os.write(reply_fd, (json.dumps(reply) + "\n").encode())
    sys.exit(1)


def _load_package() -> None:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "adaexplore", os.path.join(root, "__init__.py"), submodule_search_locations=[root]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["adaexplore"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    _end_group_with_parent(int(sys.argv[2]), sys.argv[3])
    _refuse_old_python(int(sys.argv[1]))
    sys.path.pop(0)  # the script's folder: its file names must not shadow the user's modules
    _load_package()
    from adaexplore.worker.__main__ import main

    main(reply_fd=int(sys.argv[1]), folder=sys.argv[3])
