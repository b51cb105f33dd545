"""What every proposer can be asked."""

from __future__ import annotations

from typing import ClassVar, Protocol

from adaexplore.model.candidate import Candidate
from adaexplore.search.proposal import Proposal


class Proposer(Protocol):
    """Makes candidates for one task.

    ``propose`` is called from one thread at a time. The same proposal gives the same candidate. It never gives a
    candidate whose id is in ``proposal.seen``; it gives None where it has nothing new of that kind.
    """

    name: ClassVar[str]
    """Stored with each candidate."""

    def propose(self, proposal: Proposal) -> Candidate | None:
        """Give one new candidate, or None."""
        ...
