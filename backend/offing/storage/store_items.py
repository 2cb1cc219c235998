"""Items of LangGraph's store: rows of a tenant, read and written in the caller's transaction.

An item that has expired is not there, whether or not it has been removed yet.
"""

import asyncio
import heapq
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import orjson
from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, SearchItem, SearchOp
from psycopg.types.json import Jsonb

from offing.core.store_item import ItemPut, Vectors, last_puts, similarity
from offing.storage.pool import Connection

MAX_RANKED = 10_000
"""Indexed items that one search by meaning compares, the latest of them."""

DEEPEST = 2**31 - 1

LIVE = "tenant_id = %(tenant)s and (expires_at is null or expires_at > clock_timestamp())"

UNDER = f"""
    {LIVE} and (%(prefix)s = '' or namespace = %(prefix)s
                or (namespace > %(prefix)s || '.' and namespace < %(prefix)s || '/'))
    and (%(filter)s = '{{}}' or app.store_matches(value, %(filter)s))
"""
"""Within a namespace, and as a filter says. A slash is what follows a period."""

COLUMNS = "s.namespace, s.key, s.value, s.created_at, s.updated_at"

GET = f"""
    select w.nth, {COLUMNS}
      from unnest(%(namespaces)s::text[], %(keys)s::text[]) with ordinality as w(namespace, key, nth)
      join (select * from store_item where {LIVE}) as s on s.namespace = w.namespace and s.key = w.key
"""

SEARCH = f"""
    with found as (select namespace, key, nth from store_item where {UNDER}),
    page as (
      select f.namespace, f.key, row_number() over (order by n.first, f.nth) as place
        from found f join (select namespace, min(nth) as first from found group by namespace) as n using (namespace)
       order by place limit %(limit)s offset %(offset)s)
    select {COLUMNS} from page join store_item s on s.tenant_id = %(tenant)s and (s.namespace, s.key)
      = (page.namespace, page.key) order by place
"""
"""In the order in which items were created, namespace by namespace, as LangGraph's own store in memory has it."""

VECTORS = f"""
    select nth, vectors from store_item where {UNDER} and embedder = %(embedder)s order by nth desc limit %(most)s
"""

UNRANKED = f"""
    select nth from store_item where {UNDER} and not nth = any(%(ranked)s) order by nth limit %(limit)s
"""

BY_NTH = f"""
    select {COLUMNS} from unnest(%(wanted)s::bigint[]) with ordinality as w(nth, place)
      join store_item s on s.tenant_id = %(tenant)s and s.nth = w.nth order by place
"""

NAMESPACES = f"""
    select distinct (string_to_array(namespace, '.') collate "C")[1:%(depth)s] as labels
      from store_item where {LIVE} and namespace ~ all(%(patterns)s)
     order by labels limit %(limit)s offset %(offset)s
"""

REFRESH = """
    update store_item set expires_at = clock_timestamp() + make_interval(secs => ttl_minutes * 60)
     where tenant_id = %(tenant)s and nth in (
       select s.nth from unnest(%(namespaces)s::text[], %(keys)s::text[]) as w(namespace, key)
         join store_item s on s.tenant_id = %(tenant)s and s.namespace = w.namespace and s.key = w.key
        where s.ttl_minutes is not null for no key update of s skip locked)
"""
"""What somebody else writes now gets a new time from there."""

DELETE = """
    delete from store_item s using unnest(%(namespaces)s::text[], %(keys)s::text[]) as w(namespace, key)
     where s.tenant_id = %(tenant)s and s.namespace = w.namespace and s.key = w.key
"""

PUT = """
    insert into store_item as s
           (tenant_id, namespace, key, value, ttl_minutes, expires_at, vectors, embedder, run_id)
    select %(tenant)s, p.namespace, p.key, p.value, p.ttl, clock_timestamp() + make_interval(secs => p.ttl * 60),
           p.vectors, p.embedder, %(run)s
      from unnest(%(namespaces)s::text[], %(keys)s::text[], %(values)s::jsonb[], %(ttls)s::float8[],
                  %(vectors)s::bytea[], %(embedders)s::text[]) as p(namespace, key, value, ttl, vectors, embedder)
    on conflict (tenant_id, namespace, key) do update
      set value = excluded.value, updated_at = excluded.updated_at, ttl_minutes = excluded.ttl_minutes,
          expires_at = excluded.expires_at, vectors = excluded.vectors, embedder = excluded.embedder,
          run_id = excluded.run_id,
          created_at = case when s.expires_at <= excluded.created_at then excluded.created_at else s.created_at end
"""

COUNT = "select count(*) from (select from store_item where tenant_id = %s limit %s) as counted"

Found = TypeVar("Found", bound=Item)
Read = GetOp | SearchOp | ListNamespacesOp
Query = Vectors | None
"""Of a search: the vector of what it asks for. `None` means that it does not rank by meaning."""


async def read(
    connection: Connection, tenant: UUID, ops: Sequence[Read], queries: Sequence[Query], unsaved: Sequence[ItemPut] = ()
) -> list[Any]:
    """Return the result of each operation.

    `unsaved`: puts that are written later, and that the reader is to see now.
    """
    if unsaved:
        async with connection.transaction(force_rollback=True):
            await put(connection, tenant, unsaved)
            found = await _read(connection, tenant, ops, queries)
    else:
        found = await _read(connection, tenant, ops, queries)
    await _refresh(connection, tenant, ops, found)
    return found


async def put(connection: Connection, tenant: UUID, puts: Sequence[ItemPut], run: UUID | None = None) -> None:
    """Store and delete items. Of several puts of an item the last counts. `run`: who does it."""
    last = last_puts(puts)
    if gone := [one for one in last if one.value is None]:
        await connection.execute(DELETE, {"tenant": tenant, **_places([one.place for one in gone])})
    if kept := [one for one in last if one.value is not None]:
        await connection.execute(PUT, {"tenant": tenant, "run": run, **_places([k.place for k in kept]), **_rows(kept)})


async def count_up_to(connection: Connection, tenant: UUID, most: int) -> int:
    """Return how many items a tenant has, or `most` where there are more."""
    row = await (await connection.execute(COUNT, (tenant, most))).fetchone()
    return int(row[0]) if row else 0


async def _read(connection: Connection, tenant: UUID, ops: Sequence[Read], queries: Sequence[Query]) -> list[Any]:
    gets = [op for op in ops if isinstance(op, GetOp)]
    items = iter(await _get(connection, tenant, gets) if gets else ())
    found: list[Any] = []
    for op, query in zip(ops, queries, strict=True):
        match op:
            case GetOp():
                found.append(next(items))
            case SearchOp():
                found.append(await _search(connection, tenant, op, query))
            case ListNamespacesOp():
                found.append(await _namespaces(connection, tenant, op))
    return found


async def _get(connection: Connection, tenant: UUID, ops: Sequence[GetOp]) -> list[Item | None]:
    values = {"tenant": tenant, **_places([(op.namespace, op.key) for op in ops])}
    rows = await (await connection.execute(GET, values, prepare=False)).fetchall()
    by_place = {row[0]: _item(Item, row[1:]) for row in rows}
    return [by_place.get(nth) for nth in range(1, len(ops) + 1)]


async def _search(connection: Connection, tenant: UUID, op: SearchOp, query: Query) -> list[SearchItem]:
    prefix, wanted = ".".join(op.namespace_prefix), _jsonb(op.filter or {})
    values = {"tenant": tenant, "prefix": prefix, "filter": wanted, "limit": op.limit, "offset": op.offset}
    if query is not None:
        return await _ranked(connection, values, query)
    rows = await (await connection.execute(SEARCH, values, prepare=False)).fetchall()
    return [_item(SearchItem, row) for row in rows]


async def _ranked(connection: Connection, values: dict[str, Any], query: Vectors) -> list[SearchItem]:
    """The items nearest to a query, and behind them those that are not indexed."""
    values = {**values, "embedder": query.embedder, "most": MAX_RANKED}
    rows = await (await connection.execute(VECTORS, values, prepare=False)).fetchall()
    end = values["offset"] + values["limit"]
    scores = dict(await asyncio.to_thread(_nearest, query, rows, end))
    order: list[int] = list(scores)
    if len(order) < end:
        unranked = {**values, "ranked": order, "limit": end - len(order)}
        order += [nth for (nth,) in await (await connection.execute(UNRANKED, unranked, prepare=False)).fetchall()]
    page = order[values["offset"] : end]
    found = await (await connection.execute(BY_NTH, {"tenant": values["tenant"], "wanted": page})).fetchall()
    return [_item(SearchItem, row, scores.get(nth)) for nth, row in zip(page, found, strict=True)]


def _nearest(query: Vectors, rows: Sequence[tuple[Any, ...]], most: int) -> list[tuple[int, float]]:
    """The most similar items with their scores, and of equal ones the earlier first."""
    scored = [(nth, score) for nth, packed in rows if (score := similarity(query, packed)) is not None]
    return heapq.nsmallest(most, scored, key=lambda one: (-one[1], one[0]))


async def _namespaces(connection: Connection, tenant: UUID, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    values = {
        "tenant": tenant,
        "patterns": [_pattern(condition) for condition in op.match_conditions or ()],
        "depth": DEEPEST if op.max_depth is None else op.max_depth,
        "limit": op.limit,
        "offset": op.offset,
    }
    rows = await (await connection.execute(NAMESPACES, values, prepare=False)).fetchall()
    return [tuple(labels) for (labels,) in rows]


def _pattern(condition: MatchCondition) -> str:
    """A namespace's text as a regular expression. Raises ValueError for a kind of match that there is not."""
    if not condition.path:
        return ""
    path = r"\.".join("[^.]+" if label == "*" else re.escape(label) for label in condition.path)
    match condition.match_type:
        case "prefix":
            return rf"^{path}(\.|$)"
        case "suffix":
            return rf"(^|\.){path}$"
        case other:  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError(f"Unsupported match type: {other}")


async def _refresh(connection: Connection, tenant: UUID, ops: Sequence[Read], found: Sequence[Any]) -> None:
    read: list[Item] = []
    for op, result in zip(ops, found, strict=True):
        if isinstance(op, GetOp | SearchOp) and op.refresh_ttl and result:
            read += [result] if isinstance(result, Item) else result
    if read:
        await connection.execute(REFRESH, {"tenant": tenant, **_places([(i.namespace, i.key) for i in read])})


def _item(kind: type[Found], row: Sequence[Any], *score: float | None) -> Found:
    namespace, key, value, created, updated = row
    more: Mapping[str, Any] = {"score": score[0]} if score else {}
    labels = tuple(namespace.split(".")) if namespace else ()
    return kind(namespace=labels, key=key, value=value, created_at=created, updated_at=updated, **more)


def _places(places: Sequence[tuple[tuple[str, ...], str]]) -> dict[str, list[str]]:
    return {"namespaces": [".".join(labels) for labels, _ in places], "keys": [key for _, key in places]}


def _rows(puts: Sequence[ItemPut]) -> dict[str, Any]:
    return {
        "values": [_jsonb(one.value) for one in puts],
        "ttls": [one.ttl_minutes for one in puts],
        "vectors": [one.vectors.packed if one.vectors else None for one in puts],
        "embedders": [one.vectors.embedder if one.vectors else None for one in puts],
    }


def _jsonb(value: Any) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
