"""A restore tells programs that use its database from connections that are closing."""

import threading
from contextlib import closing

import psycopg

from offing.local import ServerUrls
from offing.storage.backup import count_other_connections
from tests.local.test_backup import owners

__all__ = ["owners"]


def test_a_database_that_others_use_is_told_from_one_whose_connections_are_closing(
    owners: tuple[ServerUrls, ServerUrls],
) -> None:
    _, second = owners
    with closing(psycopg.connect(second.app_url)) as connection:
        assert count_other_connections(second.owner_url, timeout_seconds=0.1) == 1
        later = threading.Timer(0.5, connection.close)
        later.start()
        assert count_other_connections(second.owner_url, timeout_seconds=60) == 0
        later.join()
