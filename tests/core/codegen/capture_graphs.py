"""Write the captured tasks of the fixtures as JSON, for tests that start no process: ``python …/capture_graphs.py``.

``test_graphs.py`` captures them again and compares.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "graphs"
FIXTURES = (
    "broadcast_chain", "gelu_bias", "kernelbench_style", "layer_norm_mlp", "layer_norm_residual", "linear_silu",
    "long_rms_norm", "masked_softmax", "rms_norm_residual", "softmax_temperature", "statistics",
)  # fmt: skip


def to_stored(task: Any) -> str:
    """Give the task's text: without its folder and id, with symbols numbered in order of appearance."""
    from adaexplore.model.serialization import to_data

    text = json.dumps(to_data(dataclasses.replace(task, id="task", path=Path(task.path).name)), indent=1)
    symbols: dict[str, str] = {}
    return re.sub(r"\bs\d+\b", lambda m: symbols.setdefault(m[0], f"s{len(symbols)}"), text) + "\n"


def captured(names: tuple[str, ...], laboratory: Any) -> dict[str, str]:
    """Capture the fixtures' tasks in a worker; gives their texts by fixture."""
    from laboratory import MODULES, classes

    found = {}
    for name in names:
        ((path, class_name),) = classes(MODULES / f"{name}.py")
        found[name] = to_stored(laboratory.capture(path, class_name))
    return found


def main() -> None:
    from laboratory import compiling

    with tempfile.TemporaryDirectory() as folder:
        laboratory = compiling(Path(folder))
        try:
            texts = captured(FIXTURES, laboratory)
        finally:
            laboratory.worker.kill()
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts.items():
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
