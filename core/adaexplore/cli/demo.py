"""``adaexplore demo``: the main job on a module that comes with the package."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from adaexplore.cli.arguments import add_json, add_limits, add_search_options
from adaexplore.cli.context import Context
from adaexplore.cli.optimize import optimize_module
from adaexplore.cli.source import find_module
from adaexplore.errors import AdaExploreError

if TYPE_CHECKING:
    from adaexplore.cli.arguments import Commands

SECONDS = 40.0
"""The demo starts no candidate later than this, unless told otherwise."""
BUNDLED, FILE_NAME = "demo_rms_norm.py.txt", "rms_norm.py"
"""What is copied, and the copy's name; not ``.py`` here, since it imports torch, as no file of this folder may."""


def add(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "demo",
        help="optimize a module that comes with adaexplore, and show the result",
        description="Copy a small module file (the RMSNorm of a 7B model, with its residual sum) into adaexplore's "
        "data directory, and do with it what `adaexplore optimize` does with a file of yours.",
        allow_abbrev=False,
    )
    add_limits(
        parser, "candidates to try", f"start no candidate after so many seconds; default: {SECONDS:g} without --steps"
    )
    add_search_options(parser)
    add_json(parser)
    parser.set_defaults(command=run, insert=False)


def run(options: argparse.Namespace, context: Context) -> int:
    """Run the command."""
    path = copy_module(context.load_settings(options.python).data_dir)
    if not options.json:
        sys.stdout.write(f"The module is in {path}\n")
        sys.stdout.flush()
    if options.steps is None and options.seconds is None:
        options.seconds = SECONDS
    return optimize_module(find_module(path, None), options, context)


def copy_module(data_dir: Path) -> Path:
    """Give a fresh copy of the bundled file; one that somebody has edited meanwhile is left alone.

    Raises:
        AdaExploreError: The data directory does not take it.
    """
    content = files("adaexplore.cli").joinpath(BUNDLED).read_bytes()
    for number in count(1):
        path = data_dir / ("demo" if number == 1 else f"demo-{number}") / FILE_NAME
        try:
            if path.exists() and path.read_bytes() != content:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise AdaExploreError(
                reason=f"cannot write {path}: {error.strerror}",
                hint="Free space or choose another folder with ADAEXPLORE_DATA_DIR.",
            ) from error
        return path
    raise AssertionError
