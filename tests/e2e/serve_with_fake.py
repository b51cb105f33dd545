"""The real server over stdio, with the fake search: `serve_with_fake.py BEHAVIOUR`."""

import logging
import sys
from pathlib import Path

from adaexplore_lsp.server import create_server
from adaexplore_lsp.transport import claim_stdio, serve

FAKE_SEARCH = Path(__file__).parents[1] / "server" / "fake_search.py"

logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
reader, writer = claim_stdio()
server = create_server([sys.executable, str(FAKE_SEARCH), sys.argv[1]])


@server.feature("test/defect")
def on_defect(ls, params):
    raise ZeroDivisionError("a defect")


serve(server, reader, writer)
