"""What the local stack needs from the rooms above it: migrations and login links. Wired here and nowhere else."""

import asyncio
from contextlib import suppress

from offing.local.servers import Servers
from offing.local.stack import Hooks
from offing.resources import migrations_dir


def hooks() -> Hooks:
    return Hooks(migrate=migrate, login_link=login_link, release_leases=release_leases)


def migrate(servers: Servers) -> tuple[str, ...]:
    """Bring the database to this version as its owner."""
    from offing.storage.migrate import migrate as apply

    return apply(
        servers.owner_url, folder=migrations_dir(), app_role=servers.app_role, app_password=servers.app_password
    )


def release_leases(servers: Servers, process: str) -> None:
    """Have others take over at once what a process had claimed that has ended. Without Postgres its leases lapse."""
    from offing.core.errors import Unavailable
    from offing.storage.heartbeat import release_leases as release

    with suppress(Unavailable):
        release(servers.app_url, process)


def login_link(servers: Servers, page: str) -> str:
    """A one-time link into the page at `page`."""
    return asyncio.run(_login_link(servers, page))


async def _login_link(servers: Servers, page: str) -> str:
    from offing.services.access import create_login_link
    from offing.storage.migrate import LOCAL_TENANT
    from offing.storage.pool import Database

    async with Database(servers.app_url, most=2) as database:
        return await create_login_link(database, LOCAL_TENANT, page)
