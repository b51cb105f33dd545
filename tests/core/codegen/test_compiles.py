"""Candidates compile for every generation of GPU that we know, without one."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from adaexplore.proposers.builtin import BuiltinProposer

from .laboratory import MODULES, ZOO, Laboratory, all_large, compiling, wandered

SAMPLE = [
    *((ZOO / "pointwise.py", name) for name in ("SmoothActivations", "IntegersAsFloats", "Mixed", "Logic", "Halves",
                                                "DoubleHelpers", "SmallIntegers", "Conversions")),
    *((ZOO / "shapes.py", name) for name in ("Middle", "NoDimensions", "One")),
    *((ZOO / "rows.py", name) for name in ("Variances", "MaskedEverywhere", "HalfRows", "LongSoftmax", "DoubleRows",
                                           "Accuracies", "SumsOfRepeated")),
    *((ZOO / "products.py", name) for name in ("EveryOperand", "ArgumentMatrix", "HalfProduct", "PartialRows")),
    (MODULES / "layer_norm_mlp.py", "LayerNormMLP"),
]  # fmt: skip


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    laboratory = compiling(tmp_path_factory.mktemp("laboratory"))
    yield laboratory
    laboratory.worker.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), SAMPLE, ids=[name for _, name in SAMPLE])
def test_candidates_compile(laboratory: Laboratory, path: Path, name: str) -> None:
    task = laboratory.capture(path, name)
    proposer = BuiltinProposer(task, allow_tf32=False)
    random = Random(zlib.crc32(name.encode()))
    large = list(all_large(proposer))
    targets = ["cuda:80", "cuda:90", "cuda:100"]
    random.shuffle(targets)
    for target, start in zip(targets, random.sample(large, min(len(large), 2)), strict=False):
        if target == "cuda:80" and "descriptors" in start.summary:
            target = "cuda:90"  # the tensor memory accelerator came with Hopper
        candidate = wandered(proposer, start, random, 1)
        fault = laboratory.compile(task, candidate, target)
        # A tile that needs too much shared memory is a schedule's fault, and a search moves on.
        assert not fault or "out of resource" in fault, f"{target}: {candidate.summary}: {fault}\n{candidate.source}"
