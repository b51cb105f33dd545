"""A verdict on a candidate: stages in order of cost; the first that decides ends it.

parse (µs) → compile (s) → compare (s) → measure (s, on a GPU only). Each GPU stage has two halves: the one here knows
limits and turns replies into statuses; the one in ``worker/`` does the work in a process that may be killed.
"""
