"""Runs, candidates and evaluations on disk: the only state that processes share."""
