"""What editors and this server call things: commands, code action kinds, and the commands' argument."""

from __future__ import annotations

import attrs

OPTIMIZE = "adaexplore.optimize"
"""Command: start a search; answers ``{"jobId": …}`` at once, or null where it could not be started."""
CANCEL = "adaexplore.cancel"
"""Command: end a running search; it keeps the best so far. Answers whether there was one."""

KIND = "refactor.rewrite.adaexplore"
"""Kind of all our code actions; each has one below it, so that an editor's command can ask for one alone."""
KIND_OPTIMIZE = KIND + ".optimize"
KIND_CANCEL = KIND + ".cancel"
KIND_INSERT = KIND + ".insert"
KIND_REVERT = KIND + ".revert"


@attrs.frozen
class ModuleReference:
    """The one argument of every command, and the ``data`` of an action that is resolved later."""

    uri: str
    name: str
    """Qualified as Python would: ``Outer.Inner`` for a nested class."""
