"""``adaexplore runs list``: all searches, the newest first."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from adaexplore.cli.arguments import add_json
from adaexplore.cli.context import Context
from adaexplore.cli.wording import speedup, started_at, state, times
from adaexplore.model.run import Run, StepRecord
from adaexplore.search.reward import rank
from adaexplore.store.store import Store

if TYPE_CHECKING:
    from adaexplore.cli.arguments import Commands


def add(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser("list", help="all searches, the newest first", allow_abbrev=False)
    add_json(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, context: Context) -> int:
    """Run the command."""
    store = context.open_store(context.load_settings(None).data_dir)
    try:
        rows = [describe(run, store) for run in store.list_runs()]
    finally:
        store.close()
    if options.json:
        sys.stdout.writelines(json.dumps(row) + "\n" for row in rows)
    elif rows:
        _show(rows)
    else:
        sys.stdout.write("No runs yet: `adaexplore demo` makes one.\n")
    sys.stdout.flush()
    return 0


def describe(run: Run, store: Store) -> dict[str, object]:
    """Give a run's row."""
    records = store.steps(run.id)
    best = best_step(run, records)
    confirmed = run.final or (best.evaluation if best else None)
    return {
        "id": run.id,
        "class_name": run.task.class_name,
        "path": run.task.path,
        "created_at": run.created_at,
        "state": state(run, store),
        "steps": len(records),
        "step_limit": run.settings.steps,
        "best_step": best.step if best else None,
        "best_speedup": speedup(confirmed),
    }


def best_step(run: Run, records: tuple[StepRecord, ...]) -> StepRecord | None:
    """Give the best step: what the run says, or for an open run what its search holds for best."""
    if run.best_step is not None:
        return records[run.best_step - 1]
    passed = [record for record in records if record.evaluation.correctness and rank(record.evaluation)[0]]
    return max(passed, key=lambda record: rank(record.evaluation), default=None)


def _show(rows: list[dict[str, object]]) -> None:
    from rich.table import Table

    from adaexplore.cli.terminal import make_console

    table = Table(box=None, padding=(0, 2), pad_edge=False, header_style="dim")
    table.add_column("run", no_wrap=True)
    table.add_column("started (UTC)", no_wrap=True)
    table.add_column("module", overflow="fold")
    table.add_column("outcome", no_wrap=True)
    table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("best", justify="right", no_wrap=True)
    table.add_column("file", overflow="fold")
    for row in rows:
        best = row["best_speedup"]
        table.add_row(
            str(row["id"]),
            started_at(str(row["created_at"])),
            str(row["class_name"]),
            str(row["state"]),
            f"{row['steps']}/{row['step_limit']}",
            times(best) if isinstance(best, float) else "-",
            _near(Path(str(row["path"]))),
        )
    make_console().print(table)


def _near(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
