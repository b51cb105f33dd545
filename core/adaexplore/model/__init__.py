"""Plain data, in the order it flows: task, candidate, evaluation, events. No behaviour, no I/O."""
