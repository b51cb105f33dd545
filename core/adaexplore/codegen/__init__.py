"""From a captured graph to readable Triton source. No torch.

A ``Graph`` of ATen operators is *lowered* to a handful of primitives (``values``) and *partitioned* into groups that
become one kernel each; every group gets a *family* with a *schedule*, and ``emit`` writes the source. The same graph,
partition and schedules give the same bytes.

To add a family: one file in ``families/`` and its name in ``registry.FAMILIES``. To add a pointwise operator: one line
in ``operators.POINTWISE``.
"""
