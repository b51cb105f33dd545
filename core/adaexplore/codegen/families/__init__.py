"""Parametrised kernel generators, one family a file.

A family says which groups it can write (``structures``), which schedule space each structure has, and writes a kernel
for a schedule. It knows no search and measures nothing.
"""
