"""Stable hashes: the same content has the same id on every machine and in every process."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import unicodedata

from adaexplore.model.candidate import CandidateId


def short_hash(*parts: str) -> str:
    """Give 16 hexadecimal digits that depend on all ``parts`` and on their boundaries."""
    digest = hashlib.sha256(json.dumps(parts).encode())
    return digest.hexdigest()[:16]


def candidate_id(source: str) -> CandidateId:
    """Give the id of a candidate: equal for sources that differ in comments or layout only.

    A source that does not parse is hashed as text, so that it too is evaluated (and rejected) once.
    """
    try:
        normalized = ast.unparse(ast.parse(source))
    except (SyntaxError, ValueError):
        normalized = source
    return CandidateId(short_hash("candidate", normalized))


def source_hash(text: str) -> str:
    """Give the hash of a class's text, blind to comments, layout and decorators of ours."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return short_hash("source", text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.decorator_list = []
    return short_hash("source", ast.unparse(tree))


def snake_case(class_name: str) -> str:
    """Give ``rms_norm`` for ``RMSNorm``, ``outer_inner`` for ``Outer.Inner``, and ASCII for any name.

    Names of kernels reach the GPU's assembler, which knows no other letters.
    """
    text = unicodedata.normalize("NFKD", class_name.replace(".", "_")).encode("ascii", "ignore").decode()
    words = re.sub(r"(Si|Re|Ge|Se)LU", r"\1lu", text)  # one word: SiLU, ReLU, GeLU, SeLU
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", words)
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words)
    plain = re.sub(r"_+", "_", words).strip("_").lower()
    return plain if plain.isidentifier() else f"module_{short_hash('name', class_name)[:6]}"
