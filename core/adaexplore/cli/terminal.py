"""The console: where text of ours and of the user's is shown as it is."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.syntax import Syntax

_PIPE_WIDTH = 1000
"""Columns where standard output is no terminal: nothing is folded, so that `grep` finds whole paths."""


def make_console() -> Console:
    """Give a console on standard output; brackets, numbers and colons in a text mean nothing to it."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def print_source(console: Console, source: str) -> None:
    """Print Python, in colours on a terminal; its lines are never cut or filled, so that they can be copied."""
    text = source.strip("\n")
    if console.is_terminal:
        console.print(Syntax("", "python", theme="ansi_dark").highlight(text), soft_wrap=True, end="")
    else:
        console.print(text, soft_wrap=True)
