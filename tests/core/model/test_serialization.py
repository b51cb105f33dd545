import pytest

from adaexplore.model.candidate import Candidate, CandidateId, StepKind
from adaexplore.model.evaluation import Correctness, Evaluation, EvaluationStatus
from adaexplore.model.events import RunFinished
from adaexplore.model.serialization import from_json, to_json
from adaexplore.model.task import (
    AttributeRead,
    ForwardParameter,
    Graph,
    GraphInput,
    InputKind,
    Operator,
    Ref,
    Symbol,
    TensorSpec,
    Workload,
    WorkloadOrigin,
)

GRAPH = Graph(
    inputs=(GraphInput("x", InputKind.ARGUMENT, "x", ("s0", 4), "float32", True),),
    operators=(
        Operator(
            "mul", "aten.mul.Tensor", (Ref("x"), 2.0, (1, 2), None), {"a": Ref("x")}, ("s0", 4), "float32", True, 3
        ),
    ),
    outputs=("mul",),
    output_structure="tensor",
    symbols=(Symbol("s0", "x", 0, 5),),
    parameters=(ForwardParameter("x", True, None, None), ForwardParameter("flag", False, True, "True")),
    reads=(AttributeRead("eps", 1e-6), AttributeRead("shape", (1, 2)), AttributeRead("affine", True)),
    submodules=(),
)
WORKLOAD = Workload(
    WorkloadOrigin.COMMENT_SHAPES, 3, init={"dim": 3}, forward={"x": TensorSpec("float32", (3, 4)), "flag": True}
)
CANDIDATE = Candidate(CandidateId("c"), "x = 1\n", "builtin", StepKind.LARGE, params={"warps": 4, "nested": {"a": [1]}})
FINISHED = RunFinished(
    "a",
    "verified",
    "m",
    1,
    1.0,
    CANDIDATE,
    Evaluation(EvaluationStatus.PASSED, "measure", correctness=Correctness("gpu", 1, 0.0, 0.0, 0.0, 0.0)),
)


@pytest.mark.parametrize("value", [GRAPH, WORKLOAD, CANDIDATE, FINISHED], ids=lambda v: type(v).__name__)
def test_json_gives_back_an_equal_value(value: object) -> None:
    assert from_json(to_json(value), type(value)) == value
