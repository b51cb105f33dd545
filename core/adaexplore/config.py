"""Every default, unit and environment variable. The only reader of the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_data_path

DATA_DIR_VARIABLE = "ADAEXPLORE_DATA_DIR"
PYTHON_VARIABLE = "ADAEXPLORE_PYTHON"

DEFAULT_STEPS = 30
"""Candidates per run on a GPU."""
DEFAULT_STEPS_WITHOUT_GPU = 3
"""Nothing is measured without a GPU, so more candidates bring no more knowledge."""
DEFAULT_TARGET = "cuda:90"
"""What kernels are compiled for where there is no GPU."""
START_SECONDS = 120.0
"""Limit for a worker to import torch and say hello (cold disks are slow)."""

_PASSED_TO_WORKERS = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USER", "VIRTUAL_ENV",
    "CONDA_PREFIX", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR", "CC", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS",
    "PYTHONPATH", "XDG_CACHE_HOME",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds after which a worker's request ends with the worker's death."""

    capture: float = 300.0
    """Importing the user's file, building the module and exporting it."""
    compile: float = 60.0
    """Compiling one candidate. One that spills takes 15 s (triton 3.6, matmul 256x256x128, measured without a GPU)."""
    compare: float = 120.0
    """The numeric checks of one candidate."""
    measure: float = 180.0
    """One measurement; the first includes ``torch.compile``'s own compilation."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run depends on beside its task."""

    data_dir: Path
    """The store and caches."""
    python: str
    """Interpreter for workers: the one where the user's torch lives."""
    target: str = DEFAULT_TARGET
    limits: Limits = field(default_factory=Limits)


def load_settings(environ: Mapping[str, str] | None = None, python: str | None = None) -> Settings:
    """Read the environment once.

    Args:
        environ: Instead of the process's environment, for tests.
        python: Overrides ``ADAEXPLORE_PYTHON``.
    """
    env = os.environ if environ is None else environ  # noqa: TID251 - the one place
    data_dir = env.get(DATA_DIR_VARIABLE)
    return Settings(
        data_dir=Path(data_dir) if data_dir else user_data_path("adaexplore", appauthor=False),
        python=python or env.get(PYTHON_VARIABLE) or sys.executable,
    )


def worker_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Give the environment of a worker: what torch and compilers need, and no key or token."""
    env = {k: v for k, v in os.environ.items() if k in _PASSED_TO_WORKERS}  # noqa: TID251
    return env | dict(extra)
