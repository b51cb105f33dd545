"""What enters the user's files: a sidecar with the kernels, one decorator line, and the way back.

``plan_insertion`` and ``plan_revert`` only compute texts; the command line and the editor apply them. A sidecar is a
fixed header and one section a class, each with its receipt. A section that is not as we wrote it is the user's, and so
is a file without our marker: neither is ever overwritten or deleted. What stands outside our sections stays.
"""
