"""AdaExplore: verified, measured Triton kernels for PyTorch modules."""

__version__ = "0.1.0"

__all__ = ["__version__"]
