"""Servers of a benchmark's own, with a migrated database."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from offing.local import ServerUrls, open_servers
from offing.packaged_files import get_migrations_dir
from offing.settings import Settings
from offing.storage.migrate import migrate


@contextmanager
def open_migrated_servers(*, durable: bool = True) -> Generator[tuple[ServerUrls, Path]]:
    """Yield embedded servers and an empty folder for files. Both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="offing-bench-", ignore_cleanup_errors=True) as home:
        settings = Settings(home=Path(home, "servers"), database_url=None, redis_url=None)
        with open_servers(settings, durable=durable) as servers:
            migrate(
                servers.owner_url,
                folder=get_migrations_dir(),
                app_role=servers.app_role,
                app_password=servers.app_password,
            )
            files = Path(home, "files")
            files.mkdir()
            yield servers, files
