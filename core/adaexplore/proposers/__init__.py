"""Who makes candidates: the builtin proposer writes them from the graph."""
