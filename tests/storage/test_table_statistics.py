"""Tables that have got their first rows have statistics soon, so that plans for empty tables do not last."""

import psycopg

from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.table_statistics import analyze_new_tables
from tests.storage.builders import stored

HAS_STATISTICS = "select exists (select from pg_stats where schemaname = 'app' and tablename = 'run')"


async def fill(pool: Database) -> None:
    for _ in range(60):
        await stored(pool, LOCAL_TENANT)


async def test_a_table_is_analyzed_once_when_it_has_got_rows(pool: Database, owner_url: str) -> None:
    assert await analyze_new_tables(pool) == 0, "empty tables tell nothing"
    await fill(pool)
    assert await analyze_new_tables(pool) > 0
    with psycopg.connect(owner_url) as owner:
        assert owner.execute(HAS_STATISTICS).fetchone() == (True,)
    assert await analyze_new_tables(pool) == 0
