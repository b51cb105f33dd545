"""What tests of captured modules share: a task from a file, candidates by hand, and an executor open for them."""

import re
import sys
import threading
from pathlib import Path

from adaexplore.capture.export import capture, opening
from adaexplore.config import DEFAULT_TARGET, Limits, Settings
from adaexplore.executors.local import LocalExecutor
from adaexplore.model.candidate import Candidate, StepKind
from adaexplore.model.identity import candidate_id, snake_case
from adaexplore.model.task import Policy, Task
from adaexplore.optimize import Request, find_subject
from adaexplore.replacement.receipt import function_name
from adaexplore.replacement.section import render_code
from adaexplore.replacement.sidecar import header

FIXTURES = Path(__file__).parents[1] / "fixtures"
CANDIDATES = FIXTURES / "candidates"
SUBJECTS = CANDIDATES / "subjects.py"
_REPLACES = re.compile(r"^# replaces: (\w+)$", re.MULTILINE)
_EXPECT = re.compile(r"^# expect: (\w+)(?: at (\w+)(?:: (.*))?)?$", re.MULTILINE)


def make_settings(data_dir: Path, limits: Limits | None = None, python: str = sys.executable) -> Settings:
    return Settings(data_dir, python, DEFAULT_TARGET, limits or Limits())


def make_candidate(source: str, **params: object) -> Candidate:
    return Candidate(candidate_id(source), source, "by hand", StepKind.LARGE, params=params)


def read_candidate(name: str) -> tuple[Candidate, str, tuple[str, str, str]]:
    """Give a file of ``tests/fixtures/candidates``: the candidate, its class, and status, stage and words expected."""
    source = (CANDIDATES / f"{name}.py").read_text(encoding="utf-8")
    replaces, expect = _REPLACES.search(source), _EXPECT.search(source)
    assert replaces
    assert expect
    return make_candidate(source), replaces[1], (expect[1], expect[2] or "measure", expect[3] or "")


def candidate_names() -> list[str]:
    """Give all files of candidates, those for one class in a row."""
    names = sorted(p.stem for p in CANDIDATES.glob("*.py") if p != SUBJECTS)
    return sorted(names, key=lambda name: read_candidate(name)[1])


def capture_file(executor: LocalExecutor, path: Path, name: str | None = None) -> Task:
    executor.hello()
    return capture(find_subject(Request(path, name, Policy.STRICT)), executor.main, 120.0)[0]


def names_for(task: Task) -> dict[str, str]:
    return {"function": f"{snake_case(task.class_name)}_forward", "decorator": function_name(task.class_name)}


def render(task: Task, candidate: Candidate) -> str:
    return f"{header(Path(task.path))}\n\n{render_code(task, candidate)}"


def open_for(executor: LocalExecutor, task: Task) -> None:
    executor.open(
        task,
        executor.hello(),
        names_for(task),
        opening(task.path, task.class_name, task.workload, task.policy),
        lambda candidate: render(task, candidate),
    )


class Bench:
    """One executor that is opened for another class when a candidate of that class comes."""

    def __init__(self, data_dir: Path, limits: Limits | None = None) -> None:
        self.executor = LocalExecutor(make_settings(data_dir, limits), threading.Event())
        self._tasks: dict[str, Task] = {}
        self._open = ""

    def task(self, class_name: str) -> Task:
        if class_name not in self._tasks:
            self._tasks[class_name] = capture_file(self.executor, SUBJECTS, class_name)
        return self._tasks[class_name]

    def open(self, class_name: str) -> None:
        if self._open != class_name:
            open_for(self.executor, self.task(class_name))
            self._open = class_name
