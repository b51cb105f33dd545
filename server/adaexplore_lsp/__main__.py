"""``adaexplore-lsp``: the language server over standard input and output."""

from __future__ import annotations

import argparse
import logging
import sys

from adaexplore import __version__


def main(arguments: list[str] | None = None) -> None:
    """Serve until the client leaves; never returns except for ``--version``."""
    parser = argparse.ArgumentParser(prog="adaexplore-lsp", description="AdaExplore for editors, over LSP.")
    parser.add_argument("--version", action="version", version=f"adaexplore-lsp {__version__}")
    parser.add_argument("--stdio", action="store_true", help="the default, and the only transport")
    parser.add_argument("--log-level", default="WARNING", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    options = parser.parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=options.log_level, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.WARNING)  # below, it formats every body

    from adaexplore_lsp.server import create_server  # after --version, which then answers at once
    from adaexplore_lsp.transport import claim_stdio, serve

    reader, writer = claim_stdio()
    serve(create_server(), reader, writer)


if __name__ == "__main__":
    main()
