"""Where the items are that a run's graph reads and puts: the tenant's, or the run's own."""

import heapq
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, SearchItem, SearchOp

from offing.core.errors import InvalidInput
from offing.core.step import Step
from offing.core.store_item import ItemPut, Vectors, matches, similarity
from offing.kernel.store import ItemSource

MAX_OWN_ITEMS = 10_000
"""Items that a run may have of its own."""

Queries = Sequence[Vectors | None]


class RunItems(Protocol):
    """Items as one epoch of a claim knows them."""

    async def read(self, ops: Sequence[Any], queries: Queries) -> Sequence[Any]:
        """Return the result of each operation."""
        ...

    async def check_room(self, new: int) -> None:
        """Raises InvalidInput when there is no room for new items."""
        ...

    async def add(self, puts: Sequence[ItemPut], at: datetime) -> None:
        """A step has put items."""
        ...


class SharedItems:
    """Items of the tenant. `at_end`: what the run puts is stored at the end of its slice, and it sees it before."""

    def __init__(self, source: ItemSource, *, at_end: bool) -> None:
        self._source, self._at_end = source, at_end
        self._unsaved: list[ItemPut] = []

    async def read(self, ops: Sequence[Any], queries: Queries) -> Sequence[Any]:
        return await self._source.read_items(ops, queries, self._unsaved)

    async def check_room(self, new: int) -> None:
        await self._source.check_room(new)

    async def add(self, puts: Sequence[ItemPut], at: datetime) -> None:
        if self._at_end:
            self._unsaved += puts


Recorded = Callable[[], Awaitable[Sequence[tuple[Sequence[ItemPut], datetime]]]]
"""Puts that are on the run's record."""


class OwnItems:
    """Items of one run alone, made of the puts on its record. They do not expire."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded: Recorded | None = recorded
        self._items: dict[tuple[str, ...], dict[str, tuple[Item, Vectors | None]]] = {}

    async def read(self, ops: Sequence[Any], queries: Queries) -> Sequence[Any]:
        await self._load()
        return [self._result(op, query) for op, query in zip(ops, queries, strict=True)]

    async def check_room(self, new: int) -> None:
        await self._load()
        check_room(sum(map(len, self._items.values())) + new, MAX_OWN_ITEMS)

    async def add(self, puts: Sequence[ItemPut], at: datetime) -> None:
        await self._load()
        self._add(puts, at)

    async def _load(self) -> None:
        if self._recorded is not None:
            recorded, self._recorded = self._recorded, None
            for puts, at in await recorded():
                self._add(puts, at)

    def _add(self, puts: Sequence[ItemPut], at: datetime) -> None:
        for put in puts:
            within = self._items.setdefault(put.namespace, {})
            before = within.get(put.key)
            if put.value is None:
                within.pop(put.key, None)
            else:
                created = before[0].created_at if before else at
                item = Item(
                    value=dict(put.value), key=put.key, namespace=put.namespace, created_at=created, updated_at=at
                )
                within[put.key] = (item, put.vectors)
            if not within:
                del self._items[put.namespace]

    def _result(self, op: Any, query: Vectors | None) -> Any:
        match op:
            case GetOp():
                found = self._items.get(op.namespace, {}).get(op.key)
                return found[0] if found else None
            case SearchOp():
                return self._search(op, query)
            case _:
                return self._namespaces(op)

    def _search(self, op: SearchOp, query: Vectors | None) -> list[SearchItem]:
        under = [
            one
            for namespace, within in self._items.items()
            if namespace[: len(op.namespace_prefix)] == tuple(op.namespace_prefix)
            for one in within.values()
            if matches(one[0].value, op.filter or {})
        ]
        ranked = _ranked(under, query) if query else [(item, None) for item, _ in under]
        return [_scored(item, score) for item, score in ranked[op.offset : op.offset + op.limit]]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = [n for n in self._items if all(_is_match(c, n) for c in op.match_conditions or ())]
        return sorted({n[: op.max_depth] for n in found})[op.offset : op.offset + op.limit]


def check_room(wanted: int, most: int) -> None:
    """Raises InvalidInput for more items than there may be."""
    if wanted > most:
        raise InvalidInput("store", f"it would hold more than {most} items", "Delete some, or let them expire.")


def _ranked(items: Sequence[tuple[Item, Vectors | None]], query: Vectors) -> list[tuple[Item, float | None]]:
    """The nearest first, and behind them those that are not indexed."""
    scores = [
        similarity(query, vectors.packed) if vectors and vectors.embedder == query.embedder else None
        for _, vectors in items
    ]
    order = heapq.nsmallest(len(items), range(len(items)), key=lambda n: (scores[n] is None, -(scores[n] or 0.0), n))
    return [(items[nth][0], scores[nth]) for nth in order]


def _scored(item: Item, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


def _is_match(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    end = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return len(namespace) >= len(path) and all(w in ("*", label) for w, label in zip(path, end, strict=True))


def recorded_puts(steps: Sequence[Step]) -> list[tuple[list[ItemPut], datetime]]:
    """Return the puts among a run's notes, without their vectors."""
    return [
        ([put_from_json(one) for one in step.payload["puts"]], step.at)
        for step in steps
        if step.payload.get("function") == "store" and "puts" in step.payload
    ]


def put_from_json(given: Any) -> ItemPut:
    """Return a put as it is on record."""
    return ItemPut(tuple(given["namespace"]), given["key"], given["value"], given.get("ttl"))
