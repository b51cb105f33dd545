"""The tree of candidates: which to try next, and what is learned from the outcome. Pure."""
