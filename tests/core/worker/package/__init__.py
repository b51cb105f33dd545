"""A user's package, copied by a test: it is imported under the folder's name there."""
