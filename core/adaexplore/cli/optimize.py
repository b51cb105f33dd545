"""``adaexplore optimize``: search for a kernel, show what was found, and insert it if asked to."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from adaexplore.cli.arguments import add_json, add_limits, add_search_options
from adaexplore.cli.context import Context
from adaexplore.cli.insertion import check_insertable
from adaexplore.cli.search import finish, watch
from adaexplore.cli.source import UserModule, find_module, split_target
from adaexplore.config import DEFAULT_STEPS, DEFAULT_STEPS_WITHOUT_GPU
from adaexplore.model.task import Policy

if TYPE_CHECKING:
    from adaexplore.cli.arguments import Commands


def add(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "optimize",
        help="search for a faster kernel for one module",
        description="Search for a faster Triton kernel for one nn.Module class of a file; all tries are kept in the "
        "store. Ctrl-C ends the search and keeps the best so far.",
        usage="adaexplore optimize FILE[::NAME] [options]",
        allow_abbrev=False,
    )
    parser.add_argument("target_class", metavar="FILE[::NAME]", help="the file, and the class where it has several")
    add_limits(
        parser,
        f"candidates to try; default: {DEFAULT_STEPS}, and {DEFAULT_STEPS_WITHOUT_GPU} without a GPU",
        "start no candidate after so many seconds",
    )
    add_search_options(parser)
    parser.add_argument("--insert", action="store_true", help="put the kernel to use: a sidecar file and one line")
    add_json(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, context: Context) -> int:
    """Run the command."""
    path, name = split_target(options.target_class)
    return optimize_module(find_module(path, name), options, context)


def optimize_module(user_module: UserModule, options: argparse.Namespace, context: Context) -> int:
    """Search for ``user_module``; ``options`` are those of this command."""
    from adaexplore.optimize import Request

    if options.insert:
        check_insertable(user_module)
    settings = replace(context.load_settings(options.python), target=options.target)
    request = Request(
        path=Path(user_module.path),
        name=user_module.module.name,
        policy=Policy(options.policy),
        steps=options.steps,
        seconds=options.seconds,
        seed=options.seed,
        target=options.target,
    )
    store = context.open_store(settings.data_dir)
    try:
        ending = watch(lambda stop: context.optimize(request, settings, store, stop), options.json)
        return finish(ending, store, as_json=options.json, insert=options.insert)
    finally:
        store.close()
