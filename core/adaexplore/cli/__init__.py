"""The command line: one command, one file; ``main`` is the fence where every fault becomes a sentence and a code.

========  ==================================================================================================
code      means
========  ==================================================================================================
0         done: improved; verified where there is no GPU; cancelled with something found
1         nothing better, no candidate passed, or the module was refused with its reason
2         wrong use: no such file or class, a syntax error in it, a bad option or setting
3         the environment: worker, store, disk; or a defect of ours, whose traceback is in a log file
130       ended at once by a second Ctrl-C
========  ==================================================================================================

With ``--json`` standard output has one JSON object a line and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from adaexplore.cli.context import Context, default_context
from adaexplore.cli.faults import INTERRUPTED, READER_GONE, drop_output, tell_defect, tell_fault
from adaexplore.cli.parser import make_parser
from adaexplore.errors import AdaExploreError


def main(argv: Sequence[str] | None = None, context: Context | None = None) -> int:
    """Run one command and give its exit code.

    Args:
        argv: Without the program's name; None for the process's own.
        context: What the commands work with; tests give their own.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    context = context or default_context()
    as_json = "--json" in arguments
    try:
        return _run(arguments, context)
    except AdaExploreError as error:
        tell_fault(error, as_json)
        return error.exit_code
    except BrokenPipeError:
        drop_output()
        return READER_GONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the fence: people get a sentence, the log has the traceback
        return tell_defect(error, as_json, context)


def _run(arguments: Sequence[str], context: Context) -> int:
    try:
        options = make_parser().parse_args(arguments)
    except SystemExit as done:  # after --help or --version; wrong use raises UsageError
        return int(done.code or 0)
    code: int = options.command(options, context)
    return code
