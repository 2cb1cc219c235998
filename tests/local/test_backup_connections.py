"""A restore tells programs that use its database from connections that are closing."""

import threading
from contextlib import closing

import psycopg

from offing.local import Servers
from offing.storage.backup import others_connected
from tests.local.test_backup import owners

__all__ = ["owners"]


def test_a_database_that_others_use_is_told_from_one_whose_connections_are_closing(
    owners: tuple[Servers, Servers],
) -> None:
    _, second = owners
    with closing(psycopg.connect(second.app_url)) as connection:
        assert others_connected(second.owner_url, patience=0.1) == 1
        later = threading.Timer(0.5, connection.close)
        later.start()
        assert others_connected(second.owner_url, patience=60) == 0
        later.join()
