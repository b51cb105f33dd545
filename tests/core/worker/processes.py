"""What the system says of processes."""

import time
from pathlib import Path


def _state_and_group(pid: str) -> tuple[str, int]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "gone", 0
    state, _, group = text.rsplit(")", 1)[1].split()[:3]
    return state, int(group)


def group_of(pid: int) -> list[int]:
    """Give the living processes of a group, its leader's id being the group's."""
    return [
        int(p.name)
        for p in Path("/proc").iterdir()
        if p.name.isdigit() and _state_and_group(p.name)[1] == pid and _state_and_group(p.name)[0] != "Z"
    ]


def folder_of(pid: int) -> Path:
    """Give the folder for files that a worker was given."""
    return Path(Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")[-1].decode())


def ended(pids: list[int], seconds: float = 5.0) -> bool:
    """Wait until all have ended; a zombie has."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(_state_and_group(str(pid))[0] in ("gone", "Z", "X") for pid in pids):
            return True
        time.sleep(0.02)
    return False
