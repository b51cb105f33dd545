"""``adaexplore runs resume``: go on with a search where it ended."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from adaexplore.cli.arguments import add_json, add_limits
from adaexplore.cli.context import Context
from adaexplore.cli.search import finish, watch

if TYPE_CHECKING:
    from adaexplore.cli.arguments import Commands


def add(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "resume",
        help="go on with an interrupted, cancelled or finished search",
        description="Go on with a search in the same tree; nothing that was evaluated is evaluated again.",
        allow_abbrev=False,
    )
    parser.add_argument("id", metavar="ID", help="the run, or the beginning of its id")
    add_limits(
        parser,
        "new limit of candidates, those already tried included",
        "new limit of seconds, those already spent included",
    )
    add_json(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, context: Context) -> int:
    """Run the command."""
    settings = context.load_settings(None)
    store = context.open_store(settings.data_dir)
    try:
        run_id = store.get_run(options.id).id
        ending = watch(
            lambda stop: context.resume(run_id, settings, store, stop, options.steps, options.seconds), options.json
        )
        return finish(ending, store, as_json=options.json, insert=False)
    finally:
        store.close()
