"""Whether a Postgres answers, for `offing doctor`."""

import psycopg


def database_answers(url: str) -> str:
    """Its version. Raises psycopg.OperationalError with the reason that it does not answer."""
    with psycopg.connect(url, connect_timeout=3) as connection:
        row = connection.execute("show server_version").fetchone()
    return f"Postgres {row[0]}" if row else "Postgres"
