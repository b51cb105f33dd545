"""``adaexplore runs show``: one search, with its tree of candidates."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from adaexplore.capture.workload import describe_workload
from adaexplore.cli.arguments import add_json
from adaexplore.cli.context import Context
from adaexplore.cli.runs_list import best_step, describe
from adaexplore.cli.wording import environment, milliseconds, started_at, state, times
from adaexplore.model.candidate import CandidateId
from adaexplore.model.evaluation import EvaluationStatus
from adaexplore.model.run import Run, StepRecord
from adaexplore.model.serialization import to_data
from adaexplore.store.store import Store

if TYPE_CHECKING:
    from rich.console import Console

    from adaexplore.cli.arguments import Commands

_Children = dict[CandidateId | None, list[StepRecord]]


def add(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser("show", help="one search, with its tree of candidates", allow_abbrev=False)
    parser.add_argument("id", metavar="ID", help="the run, or the beginning of its id")
    parser.add_argument("--source", action="store_true", help="show the best kernel's source")
    add_json(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, context: Context) -> int:
    """Run the command."""
    store = context.open_store(context.load_settings(None).data_dir)
    try:
        found = store.get_run(options.id)
        if options.json:
            data = describe(found, store) | {"run": to_data(found), "tree": to_data(list(store.steps(found.id)))}
            sys.stdout.write(json.dumps(data) + "\n")
        else:
            show_run(found, store, options.source)
    finally:
        store.close()
    sys.stdout.flush()
    return 0


def show_run(run: Run, store: Store, with_source: bool, console: Console | None = None) -> None:
    """Print the run."""
    from adaexplore.cli.report import show_evaluation, show_facts
    from adaexplore.cli.terminal import make_console, print_source

    console = console or make_console()
    records = store.steps(run.id)
    best = best_step(run, records)
    show_facts(console, _facts(run, state(run, store), len(records)))
    if records:
        console.print()
        _show_tree(console, records, best)
    if best is not None:
        show_evaluation(console, run.final or best.evaluation)
    if with_source:
        console.print()
        if best is None:
            console.print("No candidate has passed, so there is no source to show.")
        else:
            print_source(console, best.candidate.source)


def _facts(run: Run, how: str, steps: int) -> Iterator[tuple[str, str]]:
    yield "run", f"{run.id}, started {started_at(run.created_at)} UTC"
    yield "outcome", how
    yield "module", f"{run.task.class_name} in {run.task.path}"
    yield "shapes", run.task.shapes
    yield "from", describe_workload(run.task.workload)
    yield "policy", run.task.policy.value
    yield "environment", environment(run.environment)
    yield "steps", f"{steps} of {run.settings.steps}, {run.seconds:.1f} s"
    yield "search", f"proposer {run.settings.proposer}, seed {run.settings.seed}"


def _show_tree(console: Console, records: tuple[StepRecord, ...], best: StepRecord | None) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2), pad_edge=False, header_style="dim")
    table.add_column("step", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("stage", no_wrap=True)
    table.add_column("latency", justify="right", no_wrap=True)
    table.add_column("speedup", justify="right", no_wrap=True)
    table.add_column("candidate", overflow="fold")
    children: _Children = defaultdict(list)
    for record in records:
        children[record.candidate.parent].append(record)
    for guide, record in _in_tree_order(children, None, ""):
        table.add_row(f"{guide}{record.step}", *_columns(record, best), style="bold" if record is best else None)
    console.print(table)


def _in_tree_order(children: _Children, parent: CandidateId | None, indent: str) -> Iterator[tuple[str, StepRecord]]:
    """Give each step below its parent, with the lines that lead to it."""
    for record in children[parent]:
        is_last = record is children[parent][-1]
        branch, below = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        yield ("" if parent is None else indent + branch), record
        yield from _in_tree_order(children, record.candidate.id, "" if parent is None else indent + below)


def _columns(record: StepRecord, best: StepRecord | None) -> tuple[str, ...]:
    candidate, evaluation = record.candidate, record.evaluation
    measurement = evaluation.measurement
    text = candidate.summary or candidate.id
    if record is best:
        text += "  ← best"
    if evaluation.status is not EvaluationStatus.PASSED and evaluation.detail:
        text += f"\n{evaluation.detail}"
    return (
        candidate.kind.value,
        evaluation.status.value.replace("_", " "),
        evaluation.stage,
        milliseconds(measurement.candidate.median_ms) if measurement else "-",
        times(measurement.speedup) if measurement else "-",
        text,
    )
