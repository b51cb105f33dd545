"""The pipeline judges candidates by hand as their files say: right ones pass, each kind of fault is caught."""

from collections.abc import Iterator

import pytest
from tests.core.workshop import Bench, candidate_names, make_candidate, read_candidate

from adaexplore.config import Limits
from adaexplore.model.evaluation import EvaluationStatus

pytestmark = pytest.mark.slow

NAMES = candidate_names()
ENDLESS = [name for name in NAMES if name.startswith("endless")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("data"))
    yield bench
    bench.executor.close()


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("data"), Limits(compile=10.0, compare=10.0))
    yield bench
    bench.executor.close()


def judge(bench: Bench, name: str) -> None:
    candidate, class_name, (status, stage, words) = read_candidate(name)
    bench.open(class_name)
    evaluation = bench.executor.evaluate(candidate)
    assert (evaluation.status, evaluation.stage) == (status, stage), evaluation.detail
    assert words in evaluation.detail
    assert (evaluation.correctness is not None) == (evaluation.status is EvaluationStatus.PASSED)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ENDLESS])
def test_each_candidate_gets_its_verdict(bench: Bench, name: str) -> None:
    judge(bench, name)


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_is_killed_and_the_next_is_judged(impatient: Bench, name: str) -> None:
    judge(impatient, name)
    judge(impatient, "honest_rms_norm")


def test_text_that_does_not_parse_is_rejected_with_its_line(bench: Bench) -> None:
    bench.open("RMSNormResidual")
    evaluation = bench.executor.evaluate(make_candidate("import torch\n\ndef rms_norm_residual_forward(x:\n"))
    assert (evaluation.status, evaluation.stage) == (EvaluationStatus.REJECTED, "parse")
    assert "line 3" in evaluation.detail
