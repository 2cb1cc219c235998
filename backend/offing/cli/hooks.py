"""Functions of the layers above that the local stack calls: migrations, login links and leases."""

import asyncio
from contextlib import suppress
from importlib import import_module

from offing.local.servers import ServerUrls
from offing.local.stack import StackHooks
from offing.packaged_files import get_migrations_dir


def build_hooks() -> StackHooks:
    return StackHooks(
        migrate=migrate,
        create_login_link=create_operator_link,
        prepare_login_link=import_access,
        release_leases=release_leases,
    )


def migrate(servers: ServerUrls) -> tuple[str, ...]:
    """Migrate the database to this version, as its owner."""
    from offing.storage.migrate import migrate as apply

    return apply(
        servers.owner_url, folder=get_migrations_dir(), app_role=servers.app_role, app_password=servers.app_password
    )


def release_leases(servers: ServerUrls, process: str) -> None:
    """Release the leases of an ended process, so that others can claim its runs immediately.

    Without Postgres, nothing happens and the leases expire.
    """
    from offing.core.errors import Unavailable
    from offing.storage.heartbeat import release_leases as release

    with suppress(Unavailable):
        release(servers.app_url, process)


def import_access() -> None:
    """Import what a login link needs."""
    import_module("offing.services.access")
    import_module("offing.storage.migrate")


def create_operator_link(servers: ServerUrls, web_url: str) -> str:
    """Return a one-time login link for the person who starts the installation."""
    return create_login_link(servers, web_url, is_operator=True)


def create_login_link(servers: ServerUrls, web_url: str, *, is_operator: bool = False) -> str:
    """Return a one-time login link to the web UI at `web_url`."""
    return asyncio.run(_create_login_link(servers, web_url, is_operator))


async def _create_login_link(servers: ServerUrls, web_url: str, is_operator: bool) -> str:
    from offing.services.access import create_login_link
    from offing.storage.migrate import LOCAL_TENANT
    from offing.storage.pool import Database

    async with Database(servers.app_url, max_connections=2) as database:
        return await create_login_link(database, LOCAL_TENANT, web_url, is_operator=is_operator)
