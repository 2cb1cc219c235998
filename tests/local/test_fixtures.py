"""The root fixtures give what they promise."""

import psycopg
import redis


def test_each_test_gets_a_migrated_database_of_its_own(owner_url: str, app_url: str) -> None:
    with psycopg.connect(owner_url) as owner, psycopg.connect(app_url) as app:
        assert owner.execute("select count(*) from public.offing_migration").fetchone() != (0,)
        who = app.execute("select current_user, rolsuper, rolbypassrls from pg_roles where rolname = current_user")
        assert who.fetchone() == ("offing_app", False, False)


def test_the_key_value_server_is_empty(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        assert client.dbsize() == 0  # pyright: ignore[reportUnknownMemberType]
