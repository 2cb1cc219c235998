"""The items that a run's graph can access: shared items of the tenant, or private items of the run."""

import heapq
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, SearchItem, SearchOp

from offing.core.errors import InvalidInput
from offing.core.step import Step
from offing.core.store_item import ItemPut, Vectors, find_max_similarity, matches_filter
from offing.kernel.run_store import ItemSource

MAX_PRIVATE_ITEMS = 10_000
"""Maximum number of private items of a run."""

QueryVectors = Sequence[Vectors | None]


class RunItems(Protocol):
    """The items that one epoch of a claim can access."""

    async def read_items(self, ops: Sequence[Any], queries: QueryVectors) -> Sequence[Any]:
        """Return the result of each operation."""
        ...

    async def check_capacity(self, new_items: int) -> None:
        """Raise InvalidInput if the new items would exceed the limit."""
        ...

    async def add_puts(self, puts: Sequence[ItemPut], at: datetime) -> None:
        """Add recorded puts."""
        ...


class SharedItems:
    """The shared items of a tenant.

    With `writes_at_exit`, puts of the run are stored at the end of the slice, and visible to the run
    before.
    """

    def __init__(self, source: ItemSource, *, writes_at_exit: bool) -> None:
        self._source, self._writes_at_exit = source, writes_at_exit
        self._unsaved: list[ItemPut] = []

    async def read_items(self, ops: Sequence[Any], queries: QueryVectors) -> Sequence[Any]:
        return await self._source.read_items(ops, queries, self._unsaved)

    async def check_capacity(self, new_items: int) -> None:
        await self._source.check_capacity(new_items)

    async def add_puts(self, puts: Sequence[ItemPut], at: datetime) -> None:
        if self._writes_at_exit:
            self._unsaved += puts


RecordedPutsLoader = Callable[[], Awaitable[Sequence[tuple[Sequence[ItemPut], datetime]]]]
"""Returns the recorded puts of the run."""


class PrivateItems:
    """The private items of one run, built from its recorded puts. They do not expire."""

    def __init__(self, load_recorded: RecordedPutsLoader) -> None:
        self._load_recorded: RecordedPutsLoader | None = load_recorded
        self._items: dict[tuple[str, ...], dict[str, tuple[Item, Vectors | None]]] = {}

    async def read_items(self, ops: Sequence[Any], queries: QueryVectors) -> Sequence[Any]:
        await self._load()
        return [self._execute_op(op, query) for op, query in zip(ops, queries, strict=True)]

    async def check_capacity(self, new_items: int) -> None:
        await self._load()
        check_item_count(sum(map(len, self._items.values())) + new_items, MAX_PRIVATE_ITEMS)

    async def add_puts(self, puts: Sequence[ItemPut], at: datetime) -> None:
        await self._load()
        self._apply_puts(puts, at)

    async def _load(self) -> None:
        if self._load_recorded is not None:
            recorded, self._load_recorded = self._load_recorded, None
            for puts, at in await recorded():
                self._apply_puts(puts, at)

    def _apply_puts(self, puts: Sequence[ItemPut], at: datetime) -> None:
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

    def _execute_op(self, op: Any, query: Vectors | None) -> Any:
        match op:
            case GetOp():
                item = self._items.get(op.namespace, {}).get(op.key)
                return item[0] if item else None
            case SearchOp():
                return self._search(op, query)
            case _:
                return self._list_namespaces(op)

    def _search(self, op: SearchOp, query: Vectors | None) -> list[SearchItem]:
        under = [
            one
            for namespace, within in self._items.items()
            if namespace[: len(op.namespace_prefix)] == tuple(op.namespace_prefix)
            for one in within.values()
            if matches_filter(one[0].value, op.filter or {})
        ]
        ranked = _rank_items(under, query) if query else [(item, None) for item, _ in under]
        return [_build_search_item(item, score) for item, score in ranked[op.offset : op.offset + op.limit]]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        namespaces = [n for n in self._items if all(_is_match(c, n) for c in op.match_conditions or ())]
        return sorted({n[: op.max_depth] for n in namespaces})[op.offset : op.offset + op.limit]


def check_item_count(count: int, max_items: int) -> None:
    """Raise InvalidInput if there are more items than allowed."""
    if count > max_items:
        raise InvalidInput("store", f"it would contain more than {max_items} items", "Delete some, or let them expire.")


def _rank_items(items: Sequence[tuple[Item, Vectors | None]], query: Vectors) -> list[tuple[Item, float | None]]:
    """Return items by decreasing similarity, followed by items that are not indexed."""
    scores = [
        find_max_similarity(query, vectors.packed) if vectors and vectors.embedder == query.embedder else None
        for _, vectors in items
    ]
    order = heapq.nsmallest(len(items), range(len(items)), key=lambda n: (scores[n] is None, -(scores[n] or 0.0), n))
    return [(items[nth][0], scores[nth]) for nth in order]


def _build_search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


def _is_match(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    end = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return len(namespace) >= len(path) and all(w in ("*", label) for w, label in zip(path, end, strict=True))


def list_recorded_puts(steps: Sequence[Step]) -> list[tuple[list[ItemPut], datetime]]:
    """Return the recorded puts of a run, without their vectors."""
    return [
        ([put_from_json(one) for one in step.payload["puts"]], step.at)
        for step in steps
        if step.payload.get("function") == "store" and "puts" in step.payload
    ]


def put_from_json(stored: Any) -> ItemPut:
    """Return a put from its recorded JSON."""
    return ItemPut(tuple(stored["namespace"]), stored["key"], stored["value"], stored.get("ttl"))
