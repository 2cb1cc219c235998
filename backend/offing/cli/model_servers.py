"""`offing engine servers`, `accept` and `withdraw`: model servers that runs may use."""

import asyncio
from collections.abc import Mapping

from offing import environment
from offing.core.errors import NotFound
from offing.models import accepted_servers
from offing.models.engine_discovery import probe_model_servers
from offing.settings import load_settings


def show_servers() -> int:
    env = _build_environment()
    for server in sorted(map(str, accepted_servers.list_accepted_servers(env))):
        print(f"accepted  {server}")
    for engine in asyncio.run(probe_model_servers(env)):
        print(f"{'found   ' if engine.available else 'offered '}  {engine.name}  {engine.note}")
    print(f"Accepted servers are stored in {accepted_servers.find_servers_file(env)}.")
    return 0


def accept_server(address: str) -> int:
    env = _build_environment()
    print(f"Runs may now use {accepted_servers.accept_server(env, address)}. No API key is sent to it.")
    for server in asyncio.run(probe_model_servers(env)):
        for model in server.models:
            print(f"  --engine all=litellm:{model}")
    return 0


def withdraw_server(address: str) -> int:
    env = _build_environment()
    if not accepted_servers.withdraw_server(env, address):
        raise NotFound("accepted server", address)
    print(f"Runs may no longer use {address}.")
    return 0


def _build_environment() -> Mapping[str, str]:
    """Return the environment with OFFING_HOME from the settings, so that all commands use the same file."""
    return {**environment.VARIABLES, "OFFING_HOME": str(load_settings().home)}
