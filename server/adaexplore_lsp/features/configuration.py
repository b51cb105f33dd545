"""Settings: from the initialization options, then from the editor's configuration whenever it changes."""

from __future__ import annotations

import logging

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from adaexplore_lsp.server import AdaExploreServer
from adaexplore_lsp.settings import SECTION, read_settings

logger = logging.getLogger(__name__)


def register(server: AdaExploreServer) -> None:
    """Keep ``server.settings`` as the editor has them."""

    @server.feature(types.INITIALIZE)
    def on_initialize(ls: AdaExploreServer, params: types.InitializeParams) -> None:
        ls.initial_settings = ls.settings = read_settings(params.initialization_options)

    @server.feature(types.INITIALIZED)
    async def on_initialized(ls: AdaExploreServer, _: types.InitializedParams) -> None:
        await _ask(ls)
        await _subscribe(ls)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def on_change(ls: AdaExploreServer, params: types.DidChangeConfigurationParams) -> None:
        # Clients send the tree, the section, {} or null: a signal only, where they can be asked.
        if not await _ask(ls):
            ls.settings = read_settings(params.settings, ls.initial_settings)


async def _ask(ls: AdaExploreServer) -> bool:
    """Ask for our section; False where the client cannot be asked or does not say."""
    workspace = ls.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return False
    item = types.ConfigurationItem(section=SECTION)
    try:
        values = await ls.workspace_configuration_async(types.ConfigurationParams(items=[item]))
    except JsonRpcException as error:
        logger.warning("the editor did not give its configuration: %s", error)
        return False
    ls.settings = read_settings(values[0] if values else None, ls.initial_settings)
    return True


async def _subscribe(ls: AdaExploreServer) -> None:
    workspace = ls.client_capabilities.workspace
    changes = None if workspace is None else workspace.did_change_configuration
    if changes is None or not changes.dynamic_registration:
        return
    registration = types.Registration(
        id="adaexplore-configuration",
        method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        register_options=types.DidChangeConfigurationRegistrationOptions(section=SECTION),
    )
    try:
        await ls.client_register_capability_async(types.RegistrationParams(registrations=[registration]))
    except JsonRpcException as error:
        logger.warning("the editor will not tell of changed settings: %s", error)
