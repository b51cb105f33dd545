"""``adaexplore runs``: what was searched for, what came of it, and how to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.cli import runs_insert, runs_list, runs_resume, runs_show

if TYPE_CHECKING:
    from adaexplore.cli.arguments import Commands

COMMANDS = (runs_list, runs_show, runs_resume, runs_insert)


def add(commands: Commands) -> None:
    """Add the parsers of all commands on runs."""
    parser = commands.add_parser("runs", help="list, show, resume or insert earlier searches", allow_abbrev=False)
    subcommands = parser.add_subparsers(metavar="COMMAND", dest="runs_command", required=True, title="commands")
    for command in COMMANDS:
        command.add(subcommands)
