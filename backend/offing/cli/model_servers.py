"""`offing engine servers`, `accept` and `withdraw`: which model servers of the operator's runs may ask."""

import asyncio
import os
from collections.abc import Mapping

from offing.core.errors import NotFound
from offing.models.accepted import accept, accepted_servers, servers_file, withdraw
from offing.models.discover import servers_here
from offing.settings import load_settings


def show_servers() -> int:
    env = _environment()
    for server in sorted(map(str, accepted_servers(env))):
        print(f"accepted  {server}")
    for found in asyncio.run(servers_here(env)):
        print(f"{'found   ' if found.available else 'offered '}  {found.name}  {found.note}")
    print(f"Kept in {servers_file(env)}.")
    return 0


def accept_server(address: str) -> int:
    env = _environment()
    print(f"Runs may ask {accept(env, address)} from now on. No key is sent there.")
    for found in asyncio.run(servers_here(env)):
        for model in found.models:
            print(f"  --engine all=litellm:{model}")
    return 0


def withdraw_server(address: str) -> int:
    env = _environment()
    if not withdraw(env, address):
        raise NotFound("accepted server", address)
    print(f"Runs may no longer ask {address}.")
    return 0


def _environment() -> Mapping[str, str]:
    """The environment with the home that the settings have, so that all commands of one home agree on its file."""
    return {**os.environ, "OFFING_HOME": str(load_settings().home)}
