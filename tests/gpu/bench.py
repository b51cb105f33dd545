"""`just bench`: optimize modules of ordinary size, and print the README's table.

Each row runs the whole of `adaexplore optimize` and shows its final measurement: eager, torch.compile and ours,
interleaved in one fresh process under the same precision policy.
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

from adaexplore.config import load_settings
from adaexplore.errors import AdaExploreError
from adaexplore.model.events import RunFinished, StepEvaluated
from adaexplore.model.task import Policy
from adaexplore.optimize import Request, optimize
from adaexplore.store.sqlite import SqliteStore

MODULES = {
    "rms_norm": ("RMSNorm", "init(dim=4096)", "forward(x={dtype}[8192, 4096])"),
    "linear_silu": ("LinearSiLU", "init(dim=4096, inner=11008)", "forward(x={dtype}[2048, 4096])"),
    "layer_norm": (
        "LayerNormResidual",
        "init(dim=4096)",
        "forward(x={dtype}[8192, 4096], residual={dtype}[8192, 4096])",
    ),
}
HEAD = "| module | dtype | eager | torch.compile | ours | vs eager | vs compile | e (eager) | steps | seconds |"


def case_file(folder: Path, name: str, dtype: str) -> Path:
    """Write the module's file with the workload in a comment, as a user would."""
    class_name, init, forward = MODULES[name]
    source = (Path(__file__).with_name("ordinary_modules.py")).read_text()
    comment = f"# adaexplore: {init} {forward.format(dtype=dtype)}\n"
    path = folder / f"{name}_{dtype}.py"
    path.write_text(source.replace(f"class {class_name}(", f"{comment}class {class_name}("))
    return path


def row(path: Path, name: str, dtype: str, steps: int, data: Path) -> str:
    settings = load_settings({"ADAEXPLORE_DATA_DIR": str(data)})
    started = time.monotonic()
    store = SqliteStore(settings.data_dir)
    finished = None
    try:
        for event in optimize(
            Request(path, MODULES[name][0], Policy.USER, steps=steps), settings, store, threading.Event()
        ):
            if isinstance(event, StepEvaluated):
                took = f"{event.latency_ms:.4f} ms {event.speedup:.3f}x" if event.latency_ms else event.detail
                print(f"  {time.monotonic() - started:5.1f} s  {event.step:3d} {event.kind:5s} {event.summary}: "
                      f"{event.status} {took}", file=sys.stderr, flush=True)  # fmt: skip
            if isinstance(event, RunFinished):
                finished = event
                print(f"  {event.outcome}: {event.message}", file=sys.stderr, flush=True)
    except AdaExploreError as error:
        return f"| {name} | {dtype} | {type(error).__name__}: {error} |"
    finally:
        store.close()
    seconds = time.monotonic() - started
    assert finished is not None
    if finished.evaluation is None or finished.evaluation.measurement is None:
        return f"| {name} | {dtype} | {finished.outcome}: {finished.message} |"
    m, c = finished.evaluation.measurement, finished.evaluation.correctness
    assert c is not None
    print(f"  {finished.best.summary if finished.best else ''}\n  {m}\n  {c}", file=sys.stderr, flush=True)
    compiled = f"{m.compiled.median_ms:.4f}" if m.compiled else "-"
    over = f"{m.speedup_over_compile:.2f}x" if m.speedup_over_compile else "-"
    return (
        f"| {name} | {dtype} | {m.eager.median_ms:.4f} | {compiled} | {m.candidate.median_ms:.4f} "
        f"| {m.speedup:.2f}x | {over} | {c.relative_error:.1e} ({c.eager_relative_error:.1e}) "
        f"| {finished.steps} | {seconds:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in MODULES:
            for dtype in ("f32", "bf16"):
                if arguments.only in f"{name}_{dtype}":
                    print(f"{name} {dtype}", file=sys.stderr, flush=True)
                    path = case_file(Path(folder), name, dtype)
                    rows.append(row(path, name, dtype, arguments.steps, Path(folder) / "data"))
    print("\n".join([HEAD, "|" + " --- |" * HEAD.count(" | "), *rows]))


if __name__ == "__main__":
    main()
