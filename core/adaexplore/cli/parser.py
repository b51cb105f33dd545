"""The parser of the whole command line, from the tuple of commands."""

from __future__ import annotations

import argparse
import sys

from adaexplore.cli import demo, optimize, runs
from adaexplore.cli.arguments import Parser

COMMANDS = (optimize, demo, runs)
"""Each module has ``add(commands)``, which adds its parser; that sets ``command``, called with options and context."""


def make_parser() -> argparse.ArgumentParser:
    """Give the parser; what it parses has the ``command`` to call."""
    parser = Parser(
        prog="adaexplore",
        description="Optimize PyTorch modules with Triton kernels that are verified and measured.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command_name", required=True, title="commands")
    for command in COMMANDS:
        command.add(commands)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when asked: that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("adaexplore")
        except PackageNotFoundError:
            found = "from a checkout, not installed"
        sys.stdout.write(f"adaexplore {found}\n")
        parser.exit()
