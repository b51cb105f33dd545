"""``kill -9`` of the parent leaves no worker and no child of one, whatever they are busy with."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.core.worker.processes import ended, folder_of, group_of

pytestmark = pytest.mark.slow

PARENT = """\
import sys
from pathlib import Path
from adaexplore.capture.export import opening
from adaexplore.model.task import Policy, Workload, WorkloadOrigin
from adaexplore.worker.client import WorkerClient

client = WorkerClient(sys.executable, Path(sys.argv[1]) / "log")
client.hello()
print(client.pid, flush=True)
workload = Workload(WorkloadOrigin.KERNELBENCH, 1)
client.open(opening(str(Path(sys.argv[1]) / "busy.py"), "Busy", workload, Policy.USER), 1000.0)
print("idle", flush=True)
sys.stdin.read()
"""
CHILD = """\
import pathlib, signal, subprocess, time
subprocess.Popen(["sleep", "1000"])
pathlib.Path(__file__).with_name("busy").touch()
"""
BUSY = {
    "loop": "while True:\n    pass\n",
    "loop in C": "import ctypes\nctypes.PyDLL(None).sleep(10_000)\n",
    "nothing": "class Busy: ...\n",
    "signals ignored": "for s in (1, 2, 15):\n    signal.signal(s, signal.SIG_IGN)\ntime.sleep(1000)\n",
}


@pytest.mark.parametrize("busy", BUSY.values(), ids=list(BUSY))
def test_the_parents_death_ends_all(tmp_path: Path, busy: str) -> None:
    (tmp_path / "busy.py").write_text(CHILD + busy)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        while not (tmp_path / "busy").exists():
            assert parent.poll() is None
            time.sleep(0.02)
        group = group_of(pid)
        assert len(group) == 3
        folder = folder_of(pid)
        assert folder.is_dir()
        parent.send_signal(signal.SIGKILL)
    assert ended(group)
    assert not folder.exists()
