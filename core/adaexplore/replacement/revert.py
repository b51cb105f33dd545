"""Back to PyTorch: the line goes, and with it the class's section of the sidecar."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adaexplore.errors import UsageError
from adaexplore.model.task import ModuleClass
from adaexplore.replacement.insert import LineEdit, replacement_length, split_lines
from adaexplore.replacement.sidecar import sidecar_path, take_section


@dataclass(frozen=True, slots=True)
class Reversion:
    """What to write so that a class is as before. The line goes first: it imports the sidecar."""

    edit: LineEdit
    sidecar_path: Path
    sidecar_text: str | None
    """None: delete the file, if it is there."""


def plan_revert(source: str, path: Path, module: ModuleClass, existing_sidecar: str | None) -> Reversion:
    """Plan to undo ``plan_insertion`` for ``module``.

    Args:
        source: The user's file, as it is now.
        path: Where that file is; it is not read.
        module: As found in ``source``.
        existing_sidecar: The sidecar's text as it is now; None where somebody has deleted it already.

    Raises:
        UsageError: The class is not replaced, or the sidecar is not ours or was edited.
    """
    if module.replacement_line is None:
        raise UsageError(
            reason=f"{path}:{module.class_line}: {module.name} is not replaced, so there is nothing to revert",
            hint="A replaced class has a decorator line that ends in `# adaexplore: …`.",
        )
    sidecar_text = None if existing_sidecar is None else take_section(existing_sidecar, module.name, path)
    length = replacement_length(split_lines(source), module)
    return Reversion(LineEdit(module.replacement_line, length, ""), sidecar_path(path), sidecar_text)
