"""The commands: start a search, end one. Neither waits for it."""

from __future__ import annotations

from adaexplore.capture.locate import select_module
from adaexplore.capture.workload import workload_of
from adaexplore.errors import AdaExploreError
from adaexplore_lsp.documents import Document, differs_from_disk
from adaexplore_lsp.jobs import Target
from adaexplore_lsp.progress import WorkDoneReport
from adaexplore_lsp.protocol import CANCEL, OPTIMIZE, ModuleReference
from adaexplore_lsp.server import AdaExploreServer


def register(server: AdaExploreServer) -> None:
    """Answer ``workspace/executeCommand``."""

    @server.command(OPTIMIZE)
    async def on_optimize(ls: AdaExploreServer, reference: ModuleReference) -> dict[str, str] | None:
        target = searchable(ls.document(reference.uri), reference.name)
        if isinstance(target, str):
            ls.show_error(target)
            return None
        try:
            job = await ls.jobs.start(target, ls.settings, lambda _: WorkDoneReport(ls, reference.name))
        except OSError as error:
            ls.show_error(f"AdaExplore: the search cannot be started: {error}")
            return None
        return {"jobId": job.id}

    @server.command(CANCEL)
    def on_cancel(ls: AdaExploreServer, reference: ModuleReference) -> bool:
        document = ls.document(reference.uri)
        module = None if document is None else document.module_named(reference.name)
        job = None if document is None or module is None else ls.jobs.find(document.target(module))
        if job is None:
            return False
        ls.jobs.cancel(job)
        return True


def searchable(document: Document | None, name: str) -> Target | str:
    """Give what a search of class ``name`` is to look at, or say why there can be none now."""
    if document is None:
        return "AdaExplore: open the file first, and save it: the search reads it from disk"
    if differs_from_disk(document):
        return f"AdaExplore: save {document.path.name} first: the search reads it from disk"
    try:
        module = select_module(document.modules, name, document.path)
        workload_of(document.text, module)
    except AdaExploreError as error:
        return f"AdaExplore: {error} {error.hint}".rstrip()
    return document.target(module)
