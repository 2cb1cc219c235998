"""LangGraph's store as a run's graph is given it.

Each read and each put is a call of the run: on record as a step, and read back when its node runs again.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any
from uuid import UUID

import orjson
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp, TTLConfig

from offing.core.errors import InvalidInput, Unavailable
from offing.core.provenance import Kind, Label, Origin, Trust
from offing.core.step import StepDraft, StepKind
from offing.core.store_item import ItemPut
from offing.kernel.call_key import Call, CallKeys
from offing.kernel.graph_tools import tool_call
from offing.kernel.item_checks import checked
from offing.kernel.item_index import ItemIndex, query_vectors
from offing.kernel.journal import RETRY_SECONDS, Journal
from offing.kernel.recorded_calls import NOTES, WITHIN
from offing.kernel.run_items import RunItems, put_from_json
from offing.kernel.store import Entry, ItemsRecord
from offing.kernel.tool_executor import ToolExecutor
from offing.sdk.running import BlockedLoop, waited
from offing.telemetry.redaction import without_secrets

STORE = "store"
"""The label of its steps, and the name of what is called."""

ON_LOOP = "The store is used in an async function: use aget, asearch, aput or adelete."

MAX_READ_BYTES = 2_000_000
"""Of what one read finds, as JSON: it goes on record."""

LABEL = Label(Origin(Kind.MEMORY), Trust.UNTRUSTED)


class ItemStore(BaseStore):
    """Checks operations and makes vectors. What a batch reads is read before anything of it is put."""

    supports_ttl = True

    def __init__(self, index: ItemIndex | None = None, ttl: TTLConfig | None = None) -> None:
        self.index, self.ttl_config = index, ttl

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See BaseStore. Raises InvalidInput for what cannot be stored or asked for."""
        wanted = [checked(op) for op in ops]
        reads = [nth for nth, op in enumerate(wanted) if not isinstance(op, PutOp)]
        results: list[Result] = [None] * len(wanted)
        if reads:
            found = await self._read([wanted[nth] for nth in reads])
            for nth, one in zip(reads, found, strict=True):
                results[nth] = one
        last = {(op.namespace, op.key): op for op in wanted if isinstance(op, PutOp)}
        if last:
            await self._put([last[place] for place in sorted(last)])
        return results

    @abstractmethod
    async def _read(self, ops: Sequence[Op]) -> Sequence[Any]:
        """Return the result of each operation."""

    @abstractmethod
    async def _put(self, ops: Sequence[PutOp]) -> None:
        """Store and delete items, each once."""

    async def _indexed(self, ops: Sequence[PutOp]) -> tuple[ItemPut, ...]:
        pairs = [(op, ItemPut(op.namespace, op.key, op.value, op.ttl)) for op in ops]
        return tuple(await self.index.indexed(pairs) if self.index else [put for _, put in pairs])


class RunItemStore(ItemStore):
    """The store of one epoch of a run's claim."""

    def __init__(
        self,
        keys: CallKeys,
        journal: Journal,
        executor: ToolExecutor,
        items: RunItems,
        index: ItemIndex | None,
        ttl: TTLConfig | None,
    ) -> None:
        super().__init__(index, ttl)
        self._keys, self._journal, self._executor, self._items = keys, journal, executor, items

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """See BaseStore. Raises BlockedLoop in an async function, which would wait for itself."""
        try:
            return waited(self.abatch(ops))
        except BlockedLoop:
            raise BlockedLoop(ON_LOOP) from None

    async def _read(self, ops: Sequence[Op]) -> Sequence[Any]:
        asked = [_asked(op) for op in ops]
        call = self._keys.next(STORE, asked, *_within().values())
        step = self._journal.take(call, NOTES)
        if step is None:
            self._journal.check_new(call)
            payload = _payload(asked, await self._found(ops)) | _within()
            self._taint(payload)  # before, since other branches read it as soon as it is recorded
            draft = StepDraft(StepKind.NOTE, _title(ops), payload, STORE, key=call.key)
            (step,) = await self._journal.append(Entry(draft))
        else:
            self._taint(step.payload)
        found = deepcopy(step.payload["content"]["found"])
        return [_result(op, one) for op, one in zip(ops, found, strict=True)]

    async def _found(self, ops: Sequence[Op]) -> Sequence[Any]:
        """What is stored. While Postgres is away it is asked again."""
        queries = await query_vectors(self.index, ops)
        while True:
            self._journal.check_open()
            try:
                return await self._items.read(ops, queries)
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)

    async def _put(self, ops: Sequence[PutOp]) -> None:
        ops = [op._replace(value=without_secrets(op.value)) for op in ops]
        puts = [_asked(op) for op in ops]
        call, before = self._recorded_put(puts)
        gone = [put for put in before or () if put.place not in {(op.namespace, op.key) for op in ops}]
        if before is not None and (not gone or self._journal.recorded.compares):
            return
        self._journal.check_new(call)
        ops = [*(PutOp(put.namespace, put.key, None) for put in gone), *ops]
        await self._items.check_room(sum(op.value is not None for op in ops))
        stored, puts = await self._indexed(ops), [_asked(op) for op in ops]
        draft = StepDraft(
            StepKind.NOTE, _title(ops), {"function": STORE, "puts": puts, **_within()}, STORE, key=call.key
        )
        (step,) = await self._journal.append(Entry(draft, ItemsRecord(stored)))
        await self._items.add(stored, step.at)

    def _recorded_put(self, puts: Sequence[dict[str, Any]]) -> tuple[Call, list[ItemPut] | None]:
        """The call that puts these, and what an earlier attempt of its node put there. `None`: nothing.

        Keys that are drawn at random are others when a node runs again. Then the items of the latest attempt take the
        place of those of the one before, since the graph knows of these keys alone.
        """
        lasting = [{**put, "key": _lasting(put["key"])} for put in puts]
        call = self._keys.next(STORE, lasting, *_within().values())
        before: list[ItemPut] | None = None
        while step := self._journal.take(call, NOTES):
            stored = map(put_from_json, step.payload["puts"])
            before, call = [put for put in stored if put.value is not None], call.beside("again")
        return call, before

    def _taint(self, payload: Mapping[str, Any]) -> None:
        """Whatever a graph has put there may come from anybody: it is data."""
        if any(payload["content"]["found"]):
            self._executor.expect(STORE, payload, LABEL)


def _within() -> dict[str, str]:
    """The tool call that this one is part of: it is not made again once the tool's result is on record."""
    key = tool_call.get()
    return {WITHIN: key} if key else {}


def _lasting(key: str) -> str:
    """What of a key is the same when its node runs again."""
    try:
        return UUID(key) and ""
    except ValueError:
        return key


def _asked(op: Op) -> dict[str, Any]:
    """An operation as it is recorded. What says the default is left out."""
    given: dict[str, Any] = op._asdict()
    defaults: dict[str, Any] = type(op)._field_defaults
    return {name: value for name, value in given.items() if name not in defaults or value != defaults[name]}


def _payload(asked: Sequence[Any], found: Sequence[Any]) -> dict[str, Any]:
    """A read as it is recorded, in the shape of an observation. Raises InvalidInput for one that found too much."""
    body = orjson.dumps([_written(one) for one in found])
    if len(body) > MAX_READ_BYTES:
        problem = f"it found {len(body)} bytes, and a read may find {MAX_READ_BYTES}"
        raise InvalidInput("limit", problem, "Ask for fewer items.")
    content = {"found": orjson.loads(body)}
    observed = {"tool": STORE, "status": "ok", "message": "", "content": content, **LABEL.as_json()}
    return {"function": STORE, "asked": orjson.loads(orjson.dumps(asked)), **observed}


def _written(result: Any) -> Any:
    """A result as JSON."""
    if isinstance(result, Item):
        given: Any = result
        return given.dict()
    return result and [_written(one) if isinstance(one, Item) else one for one in result]


def _result(op: Op, found: Any) -> Any:
    """A result as it was before it was JSON."""
    if isinstance(op, SearchOp):
        return [_item(SearchItem, one) for one in found]
    if isinstance(op, GetOp):
        return found and _item(Item, found)
    return [tuple(labels) for labels in found]


def _item(kind: Any, given: Mapping[str, Any]) -> Any:
    return kind(**{**given, "namespace": tuple(given["namespace"])})


def _title(ops: Sequence[Op]) -> str:
    return "; ".join(map(_words, ops))


def _words(op: Op) -> str:
    """An operation in a few words, such as `put memories/ada cat`."""
    given: dict[str, Any] = op._asdict()
    verb = type(op).__name__.removesuffix("Op").lower()
    if isinstance(op, PutOp) and op.value is None:
        verb = "delete"
    where = "/".join(given.get("namespace") or given.get("namespace_prefix") or ())
    return " ".join(part for part in (verb, where, str(given.get("key") or given.get("query") or "")) if part)
