"""``adaexplore runs insert``: put the best kernel of an earlier search to use."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from adaexplore.cli.context import Context
from adaexplore.cli.insertion import insert_best

if TYPE_CHECKING:
    from adaexplore.cli.arguments import Commands


def add(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "insert",
        help="write the best kernel into a sidecar file, and one line into the module's file",
        allow_abbrev=False,
    )
    parser.add_argument("id", metavar="ID", help="the run, or the beginning of its id")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, context: Context) -> int:
    """Run the command."""
    store = context.open_store(context.load_settings(None).data_dir)
    try:
        sys.stdout.write(insert_best(store, options.id).sentence + "\n")
    finally:
        store.close()
    return 0
