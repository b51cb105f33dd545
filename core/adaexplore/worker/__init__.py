"""The child process, and the two files through which the parent speaks to it."""
