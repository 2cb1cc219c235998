"""The statistics by which Postgres chooses its plans, of tables that autovacuum has not analyzed yet."""

from offing.storage.pool import Database

ANALYZE_NEW_TABLES = "select app.analyze_new_tables()"


async def analyze_new_tables(database: Database) -> int:
    """Analyze the tables that have rows and no statistics, and return their number.

    It is 0 while another process does so. Without statistics, plans for empty tables would be kept until autovacuum
    analyzes the tables, a minute later or more.
    """
    rows = await database.call_function(ANALYZE_NEW_TABLES, ())
    return rows[0][0]
