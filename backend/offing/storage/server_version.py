"""Connection test for Postgres, used by `offing doctor`."""

import psycopg


def get_postgres_version(url: str) -> str:
    """Return the version of a Postgres server.

    Raises `psycopg.OperationalError` with the reason if it does not answer.
    """
    with psycopg.connect(url, connect_timeout=3) as connection:
        row = connection.execute("show server_version").fetchone()
    return f"Postgres {row[0]}" if row else "Postgres"
