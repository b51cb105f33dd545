"""What the commands' parsers share: options, and the types that check each value before anything starts."""

from __future__ import annotations

import argparse
import math
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from adaexplore.config import DEFAULT_TARGET
from adaexplore.errors import UsageError
from adaexplore.model.task import Policy

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
    """What ``add_subparsers`` gives; argparse has no public name for it."""

_TARGET = re.compile(r"cuda:[1-9]\d{1,2}", re.ASCII)


class Parser(argparse.ArgumentParser):
    """Wrong use raises our error, so that ``main`` tells of it as of any other."""

    def error(self, message: str) -> NoReturn:
        """Raise.

        Raises:
            UsageError: Always.
        """
        raise UsageError(reason=message, hint=f"See `{self.prog} --help`.")


def add_limits(parser: argparse.ArgumentParser, steps: str, seconds: str) -> None:
    """Add ``--steps`` and ``--seconds``, with the texts that say what they limit."""
    parser.add_argument("--steps", type=step_count, metavar="N", help=steps)
    parser.add_argument("--seconds", type=duration, metavar="S", help=seconds)


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that decide what a search does."""
    policies = [policy.value for policy in Policy]
    parser.add_argument(
        "--policy",
        choices=policies,
        default=Policy.USER.value,
        help="what counts as the same answer: as the program has it switched on (default), without TF32, or with it",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the same seed gives the same search")
    parser.add_argument(
        "--python", type=interpreter, metavar="PATH", help="interpreter with your torch; default: this one"
    )
    parser.add_argument(
        "--target",
        type=target,
        default=DEFAULT_TARGET,
        metavar="cuda:90",
        help="what kernels are compiled for where there is no GPU",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="one JSON object a line on standard output")


def step_count(text: str) -> int:
    """Read a number of candidates."""
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, found {text!r}")
    return count


def duration(text: str) -> float:
    """Read a time in seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not (seconds > 0 and math.isfinite(seconds)):
        raise argparse.ArgumentTypeError(f"expected seconds, more than 0, found {text!r}")
    return seconds


def target(text: str) -> str:
    """Read a compilation target: ``cuda:`` and the compute capability without its dot."""
    if not _TARGET.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected cuda: and a compute capability, such as cuda:90, found {text!r}")
    return text


def interpreter(text: str) -> str:
    """Find an interpreter by its path or its name; links stay, since a virtual environment's is one."""
    path = Path(text).expanduser()
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder, not an interpreter")
    found = shutil.which(path)
    if found is None:
        what = "cannot be executed" if path.exists() else "does not exist"
        raise argparse.ArgumentTypeError(f"the interpreter {text} {what}")
    return str(Path(found).absolute())
