"""Items of LangGraph's store: rows of a tenant, read and written in the caller's transaction.

An expired item does not exist for readers, even if it has not been deleted yet.
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

from offing.core.store_item import ItemPut, Vectors, deduplicate_puts, find_max_similarity
from offing.storage.pool import Connection

MAX_RANKED_ITEMS = 10_000
"""Maximum number of indexed items, the latest ones, that one semantic search compares."""

MAX_DEPTH = 2**31 - 1

LIVE = "tenant_id = %(tenant)s and (expires_at is null or expires_at > clock_timestamp())"

IN_NAMESPACE = f"""
    {LIVE} and (%(prefix)s = '' or namespace = %(prefix)s
                or (namespace > %(prefix)s || '.' and namespace < %(prefix)s || '/'))
    and (%(filter)s = '{{}}' or app.store_field_matches(value, %(filter)s))
"""
"""Items in a namespace that match a filter. The slash is the character after the period."""

COLUMNS = "s.namespace, s.key, s.value, s.created_at, s.updated_at"

GET_ITEMS = f"""
    select w.nth, {COLUMNS}
      from unnest(%(namespaces)s::text[], %(keys)s::text[]) with ordinality as w(namespace, key, nth)
      join (select * from store_item where {LIVE}) as s on s.namespace = w.namespace and s.key = w.key
"""

SEARCH_ITEMS = f"""
    with found as (select namespace, key, nth from store_item where {IN_NAMESPACE}),
    page as (
      select f.namespace, f.key, row_number() over (order by n.first, f.nth) as place
        from found f join (select namespace, min(nth) as first from found group by namespace) as n using (namespace)
       order by place limit %(limit)s offset %(offset)s)
    select {COLUMNS} from page join store_item s on s.tenant_id = %(tenant)s and (s.namespace, s.key)
      = (page.namespace, page.key) order by place
"""
"""In the order of creation, namespace by namespace, as in LangGraph's in-memory store."""

LIST_VECTORS = f"""
    select nth, vectors from store_item where {IN_NAMESPACE} and embedder = %(embedder)s order by nth desc limit
    %(most)s
"""

LIST_UNRANKED = f"""
    select nth from store_item where {IN_NAMESPACE} and not nth = any(%(ranked)s) order by nth limit %(limit)s
"""

LIST_ITEMS_BY_NTH = f"""
    select {COLUMNS} from unnest(%(wanted)s::bigint[]) with ordinality as w(nth, place)
      join store_item s on s.tenant_id = %(tenant)s and s.nth = w.nth order by place
"""

LIST_NAMESPACES = f"""
    select distinct (string_to_array(namespace, '.') collate "C")[1:%(depth)s] as labels
      from store_item where {LIVE} and namespace ~ all(%(patterns)s)
     order by labels limit %(limit)s offset %(offset)s
"""

REFRESH_EXPIRY = """
    update store_item set expires_at = clock_timestamp() + make_interval(secs => ttl_minutes * 60)
     where tenant_id = %(tenant)s and nth in (
       select s.nth from unnest(%(namespaces)s::text[], %(keys)s::text[]) as w(namespace, key)
         join store_item s on s.tenant_id = %(tenant)s and s.namespace = w.namespace and s.key = w.key
        where s.ttl_minutes is not null for no key update of s skip locked)
"""
"""Skips locked rows: an item that another transaction writes now gets a new expiry time there."""

DELETE_ITEMS = """
    delete from store_item s using unnest(%(namespaces)s::text[], %(keys)s::text[]) as w(namespace, key)
     where s.tenant_id = %(tenant)s and s.namespace = w.namespace and s.key = w.key
"""

UPSERT_ITEMS = """
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

COUNT_ITEMS = "select count(*) from (select from store_item where tenant_id = %s limit %s) as counted"

ItemT = TypeVar("ItemT", bound=Item)
ReadOp = GetOp | SearchOp | ListNamespacesOp
VectorQuery = Vectors | None
"""The vector of a search query. `None` means that the search is not semantic."""


async def read_items(
    connection: Connection,
    tenant_id: UUID,
    ops: Sequence[ReadOp],
    queries: Sequence[VectorQuery],
    unsaved_puts: Sequence[ItemPut] = (),
) -> list[Any]:
    """Return the result of each operation.

    `unsaved_puts` are puts that are written later but must already be visible to the reader.
    """
    if unsaved_puts:
        async with connection.transaction(force_rollback=True):
            await write_items(connection, tenant_id, unsaved_puts)
            results = await _execute_reads(connection, tenant_id, ops, queries)
    else:
        results = await _execute_reads(connection, tenant_id, ops, queries)
    await _refresh_expiry(connection, tenant_id, ops, results)
    return results


async def write_items(
    connection: Connection, tenant_id: UUID, puts: Sequence[ItemPut], run_id: UUID | None = None
) -> None:
    """Store and delete items.

    If an item has several puts, the last one counts. `run_id` is the run that writes.
    """
    last = deduplicate_puts(puts)
    if deleted := [one for one in last if one.value is None]:
        await connection.execute(DELETE_ITEMS, {"tenant": tenant_id, **_key_columns([one.address for one in deleted])})
    if written := [one for one in last if one.value is not None]:
        await connection.execute(
            UPSERT_ITEMS,
            {
                "tenant": tenant_id,
                "run": run_id,
                **_key_columns([k.address for k in written]),
                **_put_parameters(written),
            },
        )


async def count_items(connection: Connection, tenant_id: UUID, max_count: int) -> int:
    """Return the number of items of a tenant, or `max_count` if there are more."""
    row = await (await connection.execute(COUNT_ITEMS, (tenant_id, max_count))).fetchone()
    return int(row[0]) if row else 0


async def _execute_reads(
    connection: Connection, tenant_id: UUID, ops: Sequence[ReadOp], queries: Sequence[VectorQuery]
) -> list[Any]:
    gets = [op for op in ops if isinstance(op, GetOp)]
    items = iter(await _get_items(connection, tenant_id, gets) if gets else ())
    results: list[Any] = []
    for op, query in zip(ops, queries, strict=True):
        match op:
            case GetOp():
                results.append(next(items))
            case SearchOp():
                results.append(await _search_items(connection, tenant_id, op, query))
            case ListNamespacesOp():
                results.append(await _list_namespaces(connection, tenant_id, op))
    return results


async def _get_items(connection: Connection, tenant_id: UUID, ops: Sequence[GetOp]) -> list[Item | None]:
    values = {"tenant": tenant_id, **_key_columns([(op.namespace, op.key) for op in ops])}
    rows = await (await connection.execute(GET_ITEMS, values, prepare=False)).fetchall()
    by_index = {row[0]: _item_from_row(Item, row[1:]) for row in rows}
    return [by_index.get(nth) for nth in range(1, len(ops) + 1)]


async def _search_items(connection: Connection, tenant_id: UUID, op: SearchOp, query: VectorQuery) -> list[SearchItem]:
    prefix, item_filter = ".".join(op.namespace_prefix), _jsonb(op.filter or {})
    values = {"tenant": tenant_id, "prefix": prefix, "filter": item_filter, "limit": op.limit, "offset": op.offset}
    if query is not None:
        return await _rank_items(connection, values, query)
    rows = await (await connection.execute(SEARCH_ITEMS, values, prepare=False)).fetchall()
    return [_item_from_row(SearchItem, row) for row in rows]


async def _rank_items(connection: Connection, parameters: dict[str, Any], query: Vectors) -> list[SearchItem]:
    """Return the items most similar to a query, followed by those that are not indexed."""
    parameters = {**parameters, "embedder": query.embedder, "most": MAX_RANKED_ITEMS}
    rows = await (await connection.execute(LIST_VECTORS, parameters, prepare=False)).fetchall()
    end = parameters["offset"] + parameters["limit"]
    scores = dict(await asyncio.to_thread(_find_nearest, query, rows, end))
    order: list[int] = list(scores)
    if len(order) < end:
        unranked = {**parameters, "ranked": order, "limit": end - len(order)}
        order += [nth for (nth,) in await (await connection.execute(LIST_UNRANKED, unranked, prepare=False)).fetchall()]
    page = order[parameters["offset"] : end]
    cursor = await (
        await connection.execute(LIST_ITEMS_BY_NTH, {"tenant": parameters["tenant"], "wanted": page})
    ).fetchall()
    return [_item_from_row(SearchItem, row, scores.get(nth)) for nth, row in zip(page, cursor, strict=True)]


def _find_nearest(query: Vectors, rows: Sequence[tuple[Any, ...]], limit: int) -> list[tuple[int, float]]:
    """Return the most similar items with their scores.

    Among equal scores the earlier item comes first.
    """
    scored = [(nth, score) for nth, packed in rows if (score := find_max_similarity(query, packed)) is not None]
    return heapq.nsmallest(limit, scored, key=lambda one: (-one[1], one[0]))


async def _list_namespaces(connection: Connection, tenant_id: UUID, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    values = {
        "tenant": tenant_id,
        "patterns": [_namespace_pattern(condition) for condition in op.match_conditions or ()],
        "depth": MAX_DEPTH if op.max_depth is None else op.max_depth,
        "limit": op.limit,
        "offset": op.offset,
    }
    rows = await (await connection.execute(LIST_NAMESPACES, values, prepare=False)).fetchall()
    return [tuple(labels) for (labels,) in rows]


def _namespace_pattern(condition: MatchCondition) -> str:
    """Convert a condition on namespaces to a regular expression.

    Raises `ValueError` for an unknown match type.
    """
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


async def _refresh_expiry(connection: Connection, tenant_id: UUID, ops: Sequence[ReadOp], items: Sequence[Any]) -> None:
    read: list[Item] = []
    for op, result in zip(ops, items, strict=True):
        if isinstance(op, GetOp | SearchOp) and op.refresh_ttl and result:
            read += [result] if isinstance(result, Item) else result
    if read:
        await connection.execute(
            REFRESH_EXPIRY, {"tenant": tenant_id, **_key_columns([(i.namespace, i.key) for i in read])}
        )


def _item_from_row(item_type: type[ItemT], row: Sequence[Any], *score: float | None) -> ItemT:
    namespace, key, value, created, updated = row
    more: Mapping[str, Any] = {"score": score[0]} if score else {}
    labels = tuple(namespace.split(".")) if namespace else ()
    return item_type(namespace=labels, key=key, value=value, created_at=created, updated_at=updated, **more)


def _key_columns(keys: Sequence[tuple[tuple[str, ...], str]]) -> dict[str, list[str]]:
    return {"namespaces": [".".join(labels) for labels, _ in keys], "keys": [key for _, key in keys]}


def _put_parameters(puts: Sequence[ItemPut]) -> dict[str, Any]:
    return {
        "values": [_jsonb(one.value) for one in puts],
        "ttls": [one.ttl_minutes for one in puts],
        "vectors": [one.vectors.packed if one.vectors else None for one in puts],
        "embedders": [one.vectors.embedder if one.vectors else None for one in puts],
    }


def _jsonb(value: Any) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
