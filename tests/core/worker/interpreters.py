"""Stand-ins for users' interpreters: real virtual environments whose torch, triton and numpy are a version number."""

import subprocess
import sys
import sysconfig
from pathlib import Path

_TORCH = """\
__version__ = "{version}"


class version:
    cuda = None


class cuda:
    is_available = staticmethod(lambda: False)
"""
_WHAT_TORCH_NEEDS = (
    "torch", "triton", "numpy", "numpy.libs", "torchgen", "functorch", "sympy", "mpmath", "networkx", "jinja2",
    "markupsafe", "filelock", "fsspec", "typing_extensions.py",
)  # fmt: skip


def bare(folder: Path) -> Path:
    """Give the interpreter of an empty environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def site_packages(python: Path) -> Path:
    return python.parent.parent / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"


def with_versions(folder: Path, **versions: str) -> Path:
    """Give an interpreter with stand-ins of these versions: ``torch="2.5.1"``."""
    python = bare(folder)
    for name, version in versions.items():
        text = _TORCH if name == "torch" else '__version__ = "{version}"\n'
        (site_packages(python) / f"{name}.py").write_text(text.replace("{version}", version))
    return python


def with_torch_alone(folder: Path) -> Path:
    """Give an interpreter that sees our torch, triton and numpy, and none of this package's dependencies."""
    python = bare(folder)
    ours = Path(sysconfig.get_paths()["purelib"])
    for name in _WHAT_TORCH_NEEDS:
        if (ours / name).exists():
            (site_packages(python) / name).symlink_to(ours / name)
    for file in ours.glob("torch-*"):  # torch asks for its own metadata
        (site_packages(python) / file.name).symlink_to(file)
    return python
