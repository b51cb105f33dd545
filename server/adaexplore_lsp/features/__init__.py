"""The features: each module has a ``register`` function and a pure function that does the work."""

from __future__ import annotations

from adaexplore_lsp.features import code_action, commands, configuration, hover, lifecycle

FEATURES = (code_action, commands, configuration, hover, lifecycle)
