"""The stages, one file each."""
