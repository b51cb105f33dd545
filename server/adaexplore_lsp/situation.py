"""How a module stands: its workload or what is missing, a search at work, results, an inserted kernel."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.capture.workload import workload_of
from adaexplore.errors import AdaExploreError, StoreError
from adaexplore.model.task import ModuleClass, Workload
from adaexplore.replacement.receipt import Receipt
from adaexplore.replacement.sidecar import parse_receipts
from adaexplore_lsp.documents import Document, module_hash
from adaexplore_lsp.edits import sidecar_of
from adaexplore_lsp.jobs import JobState
from adaexplore_lsp.results import Result, present
from adaexplore_lsp.server import AdaExploreServer


@dataclass(frozen=True, slots=True)
class Situation:
    """All that code actions and hover say of one module, at one moment."""

    document: Document
    module: ModuleClass
    workload: Workload | AdaExploreError
    """Or why there is none."""
    running: JobState | None = None
    result: Result | None = None
    """Of the present text."""
    stale: Result | None = None
    """The newest, of another text, where the present one has none."""
    receipt: Receipt | None = None
    """Of the inserted kernel."""
    fault: str = ""
    """Why the store could not be asked."""

    @property
    def replaced(self) -> bool:
        """Whether our decorator stands above the class."""
        return self.module.replacement_line is not None

    @property
    def receipt_is_stale(self) -> bool:
        """Whether the class was changed since its kernel was made."""
        return self.receipt is not None and self.receipt.source_hash != module_hash(self.document, self.module)

    @property
    def can_insert(self) -> bool:
        """Whether there is a kernel for the present text that is not the inserted one."""
        if self.result is None or not self.result.insertable:
            return False
        return not self.replaced or self.receipt is None or self.receipt.run_id != self.result.run.id


def situation_of(server: AdaExploreServer, document: Document, module: ModuleClass) -> Situation:
    """Ask the text, the jobs, the store and the sidecar."""
    target = document.target(module)
    job = server.jobs.find(target)
    fault = ""
    results: tuple[Result, ...] = ()
    try:
        results = server.results.of(server.settings.resolved_data_dir(), target)
    except StoreError as error:
        fault = f"{error} {error.hint}".rstrip()
    result = present(results, module_hash(document, module))
    return Situation(
        document=document,
        module=module,
        workload=_workload(document, module),
        running=None if job is None else job.state,
        result=result,
        stale=results[0] if results and result is None else None,
        receipt=_receipt(server, document, module),
        fault=fault,
    )


def _workload(document: Document, module: ModuleClass) -> Workload | AdaExploreError:
    try:
        return workload_of(document.text, module)
    except AdaExploreError as error:
        return error


def _receipt(server: AdaExploreServer, document: Document, module: ModuleClass) -> Receipt | None:
    if module.replacement_line is None:
        return None
    sidecar = sidecar_of(document, server.workspace)
    return parse_receipts(sidecar.text or "").get(module.name)
