"""What an editor may set, under ``adaexplore``; read from initialization options and from its configuration."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.config import load_settings
from adaexplore.model.task import Policy

SECTION = "adaexplore"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """All settings, with what holds where nothing is set."""

    python: str | None = None
    """Interpreter for workers: the one where your torch lives. Default: ``ADAEXPLORE_PYTHON``, else the server's."""
    steps: int | None = None
    """Candidates per search. Default: the engine's."""
    seconds: float | None = None
    """Limit of a search's time. Default: none."""
    policy: Policy | None = None
    """What counts as the same answer: ``user``, ``strict`` or ``tf32``. Default: the engine's."""
    data_dir: Path | None = None
    """``dataDir``: folder of the store and of the searches' logs. Default: ``ADAEXPLORE_DATA_DIR``, else the
    platform's."""

    def resolved_data_dir(self) -> Path:
        """Give the folder of the store."""
        return self.data_dir or load_settings().data_dir


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a non-empty string is wanted")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a whole number above 0 is wanted")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError("a number above 0 is wanted")
    return float(value)


def _folder(value: Any) -> Path:
    path = Path(_text(value)).expanduser()
    if not path.is_absolute():
        raise ValueError("an absolute path is wanted")
    return path


_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "python": ("python", _text),
    "steps": ("steps", _count),
    "seconds": ("seconds", _seconds),
    "policy": ("policy", lambda value: Policy(_text(value))),
    "dataDir": ("data_dir", _folder),
}
"""Name for editors → field and check."""


def read_settings(data: Any, base: ServerSettings | None = None) -> ServerSettings:
    """Give ``base`` with what ``data`` sets; a wrong value is logged and leaves its setting as it was.

    Args:
        data: What the client sent: null, the section's values, or a tree that has the section.
        base: Settings to start from.
    """
    settings = base or ServerSettings()
    if isinstance(data, dict) and SECTION in data:
        data = data[SECTION]
    if not isinstance(data, dict):
        return settings
    for key, value in data.items():
        if key not in _FIELDS:
            logger.warning("setting %s.%s: unknown", SECTION, key)
            continue
        if value is None:
            continue
        field, check = _FIELDS[key]
        try:
            settings = dataclasses.replace(settings, **{field: check(value)})
        except ValueError as error:
            logger.warning("setting %s.%s: %s", SECTION, key, error)
    return settings
