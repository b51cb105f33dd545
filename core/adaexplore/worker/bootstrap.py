"""Start a worker in any interpreter: put this package, and nothing else of ours, in reach of it.

Run as a script. The package's folder may sit in a ``site-packages`` full of libraries whose versions would clash with
the user's, so it is loaded by its place and never put on ``sys.path``.
"""

import ctypes
import importlib.util
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Linux ``prctl(2)``: the signal this process gets when its parent dies."""


def _die_with_parent() -> None:
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):  # the parent died before the call
        os._exit(1)


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
    _die_with_parent()
    sys.path.pop(0)  # the script's folder: its file names must not shadow the user's modules
    _load_package()
    from adaexplore.worker.__main__ import main

    main(reply_fd=int(sys.argv[2]))
