"""Evaluations on this machine: one worker for the GPU; without one, a worker that compiles and one that interprets."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from adaexplore.config import Settings
from adaexplore.errors import UsageError, WorkerError
from adaexplore.evaluation.pipeline import evaluate
from adaexplore.evaluation.stage import Stage
from adaexplore.evaluation.stages.compare import Compare
from adaexplore.evaluation.stages.compile import Compile
from adaexplore.evaluation.stages.measure import Measure
from adaexplore.evaluation.stages.parse import Parse
from adaexplore.model.candidate import Candidate
from adaexplore.model.evaluation import Evaluation
from adaexplore.model.task import Environment, Task
from adaexplore.worker.client import WorkerClient
from adaexplore.worker.targets import architecture


class LocalExecutor:
    """Keeps its workers alive between candidates; they are replaced when one of them was killed or lost its GPU."""

    def __init__(self, settings: Settings, stop: Event) -> None:
        self._settings = settings
        log = settings.data_dir / "logs"
        self.main = WorkerClient(settings.python, log / "worker.log", stop=stop)
        self._interpreter = WorkerClient(settings.python, log / "interpreter.log", interpret=True, stop=stop)
        self._stages: tuple[Stage, ...] = ()
        self._open: dict[str, object] = {}

    def hello(self) -> Environment:
        """Start the workers and give the environment that candidates will meet.

        Raises:
            WorkerStartError: The interpreter lacks something; the message says what to install.
            UsageError: There is no GPU, and the target to compile for instead is unknown.
        """
        self.main.prestart()
        environment = self.main.hello()
        if not environment.gpu:
            _require_known(self._settings.target)
            self._interpreter.hello()
        return environment

    def open(
        self, task: Task, environment: Environment, names: dict[str, str], arguments: dict[str, object],
        render: Callable[[Candidate], str],
    ) -> None:  # fmt: skip
        """Build the task's module in every worker, and put the stages together.

        Args:
            task: What candidates are for.
            environment: From :meth:`hello`.
            names: ``function`` and ``decorator`` that a candidate's sidecar defines.
            arguments: Of the OPEN request.
            render: Candidate → its sidecar's text.

        Raises:
            WorkerError: The module cannot be built.
        """
        limits = self._settings.limits
        workers = [self.main] if environment.gpu else [self.main, self._interpreter]
        for worker in workers:
            reply = worker.open(arguments, limits.capture)
            if not reply["ok"]:
                raise WorkerError(reason=f"{task.class_name} cannot be built again: {reply['message']}")
        numeric = self.main if environment.gpu else self._interpreter
        target = None if environment.gpu else self._settings.target
        self._stages = (
            Parse(names["function"], render),
            Compile(self.main, names, target, limits.compile),
            Compare(numeric, names, task.graph, limits.compare),
            Measure(self.main, names, environment, limits.measure),
        )

    def evaluate(self, candidate: Candidate) -> Evaluation:
        """Give the verdict on a candidate."""
        return evaluate(candidate, self._stages)

    def confirm(self, candidate: Candidate) -> Evaluation:
        """Evaluate once more in fresh processes."""
        self.close()
        return self.evaluate(candidate)

    def available_parallelism(self) -> int:
        """Give 1: measurements must not disturb each other."""
        return 1

    def close(self) -> None:
        """End all workers."""
        self.main.kill()
        self._interpreter.kill()


def _require_known(target: str) -> None:
    try:
        architecture(target)
    except ValueError as error:
        raise UsageError(reason=str(error)) from None
