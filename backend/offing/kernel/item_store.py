"""LangGraph's store for the graph of a run.

Each read and each put is a call of the run: it is recorded as a step, and read back when its node
runs again.
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
from offing.core.provenance import Origin, OriginKind, ProvenanceLabel, TrustLevel
from offing.core.step import StepDraft, StepKind
from offing.core.store_item import ItemPut
from offing.kernel.call_key import CallKeys, NodeCall
from offing.kernel.graph_tools import current_tool_call
from offing.kernel.item_checks import validate_op
from offing.kernel.item_index import ItemIndex, embed_queries
from offing.kernel.journal import RETRY_SECONDS, Journal
from offing.kernel.recorded_calls import ENCLOSING_CALL_KEY, NOTE_KINDS
from offing.kernel.run_items import RunItems, put_from_json
from offing.kernel.run_store import ItemsAttachment, JournalEntry
from offing.kernel.tool_executor import ToolExecutor
from offing.sdk.current_run import EventLoopBlockedError, run_blocking
from offing.telemetry.redaction import remove_secrets

STORE_LABEL = "store"
"""Label of the steps of the store, and name of its calls."""

BLOCKED_LOOP_MESSAGE = "The store is used synchronously in an async function. Use aget, asearch, aput or adelete."

MAX_READ_BYTES = 2_000_000
"""Maximum size of the results of one read as JSON, in bytes. They are recorded in a step."""

PROVENANCE = ProvenanceLabel(Origin(OriginKind.MEMORY), TrustLevel.UNTRUSTED)


class ItemStore(BaseStore):
    """Validates operations and computes vectors. The reads of a batch are executed before its puts."""

    supports_ttl = True

    def __init__(self, index: ItemIndex | None = None, ttl: TTLConfig | None = None) -> None:
        self.index, self.ttl_config = index, ttl

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See BaseStore. Raises InvalidInput for invalid operations or values."""
        valid_ops = [validate_op(op) for op in ops]
        reads = [nth for nth, op in enumerate(valid_ops) if not isinstance(op, PutOp)]
        results: list[Result] = [None] * len(valid_ops)
        if reads:
            read_results = await self._read_items([valid_ops[nth] for nth in reads])
            for nth, one in zip(reads, read_results, strict=True):
                results[nth] = one
        last = {(op.namespace, op.key): op for op in valid_ops if isinstance(op, PutOp)}
        if last:
            await self._put_items([last[index] for index in sorted(last)])
        return results

    @abstractmethod
    async def _read_items(self, ops: Sequence[Op]) -> Sequence[Any]:
        """Return the result of each operation."""

    @abstractmethod
    async def _put_items(self, ops: Sequence[PutOp]) -> None:
        """Store and delete items. Each key occurs once."""

    async def _build_puts(self, ops: Sequence[PutOp]) -> tuple[ItemPut, ...]:
        pairs = [(op, ItemPut(op.namespace, op.key, op.value, op.ttl)) for op in ops]
        return tuple(await self.index.embed_puts(pairs) if self.index else [put for _, put in pairs])


class RunItemStore(ItemStore):
    """The store of one epoch of a claimed run."""

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
        """See BaseStore.

        Raises EventLoopBlockedError in an async function, where it would wait for itself.
        """
        try:
            return run_blocking(self.abatch(ops))
        except EventLoopBlockedError:
            raise EventLoopBlockedError(BLOCKED_LOOP_MESSAGE) from None

    async def _read_items(self, ops: Sequence[Op]) -> Sequence[Any]:
        json_ops = [_op_to_json(op) for op in ops]
        call = self._keys.next_call(STORE_LABEL, json_ops, *_enclosing_tool_call().values())
        step = self._journal.take_recorded(call, NOTE_KINDS)
        if step is None:
            self._journal.check_new(call)
            payload = _build_read_payload(json_ops, await self._read_stored(ops)) | _enclosing_tool_call()
            # before the append, because other branches read the step as soon as it is recorded
            self._note_taint(payload)
            draft = StepDraft(StepKind.NOTE, _render_title(ops), payload, STORE_LABEL, call_key=call.key)
            (step,) = await self._journal.append(JournalEntry(draft))
        else:
            self._note_taint(step.payload)
        stored_results = deepcopy(step.payload["content"]["found"])
        return [_result_from_json(op, one) for op, one in zip(ops, stored_results, strict=True)]

    async def _read_stored(self, ops: Sequence[Op]) -> Sequence[Any]:
        """Read stored items. While Postgres is unavailable, the read is retried."""
        queries = await embed_queries(self.index, ops)
        while True:
            self._journal.check_open()
            try:
                return await self._items.read_items(ops, queries)
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)

    async def _put_items(self, ops: Sequence[PutOp]) -> None:
        ops = [op._replace(value=remove_secrets(op.value)) for op in ops]
        puts = [_op_to_json(op) for op in ops]
        call, before = self._find_recorded_put(puts)
        evicted = [put for put in before or () if put.address not in {(op.namespace, op.key) for op in ops}]
        if before is not None and (not evicted or self._journal.recorded_calls.is_comparing):
            return
        self._journal.check_new(call)
        ops = [*(PutOp(put.namespace, put.key, None) for put in evicted), *ops]
        await self._items.check_capacity(sum(op.value is not None for op in ops))
        stored, puts = await self._build_puts(ops), [_op_to_json(op) for op in ops]
        draft = StepDraft(
            StepKind.NOTE,
            _render_title(ops),
            {"function": STORE_LABEL, "puts": puts, **_enclosing_tool_call()},
            STORE_LABEL,
            call_key=call.key,
        )
        (step,) = await self._journal.append(JournalEntry(draft, ItemsAttachment(stored)))
        await self._items.add_puts(stored, step.at)

    def _find_recorded_put(self, puts: Sequence[dict[str, Any]]) -> tuple[NodeCall, list[ItemPut] | None]:
        """Return the call of these puts, and the puts of an earlier attempt of the node.

        `None` means no attempt.

        Random keys differ when a node runs again. Then the items of the latest attempt replace those of the
        previous attempt, because the graph has only the latest keys.
        """
        lasting = [{**put, "key": _stable_key(put["key"])} for put in puts]
        call = self._keys.next_call(STORE_LABEL, lasting, *_enclosing_tool_call().values())
        before: list[ItemPut] | None = None
        while step := self._journal.take_recorded(call, NOTE_KINDS):
            stored = map(put_from_json, step.payload["puts"])
            before, call = [put for put in stored if put.value is not None], call.side_call("again")
        return call, before

    def _note_taint(self, payload: Mapping[str, Any]) -> None:
        """Mark the run as tainted. Items of a store may come from any source, so they are untrusted."""
        if any(payload["content"]["found"]):
            self._executor.add_external_result(STORE_LABEL, payload, PROVENANCE)


def _enclosing_tool_call() -> dict[str, str]:
    """Return the tool call to which this call belongs.

    Once the result of the tool is recorded, this call is not repeated.
    """
    key = current_tool_call.get()
    return {ENCLOSING_CALL_KEY: key} if key else {}


def _stable_key(key: str) -> str:
    """Return the part of a key that stays the same when its node runs again. Random UUIDs become empty."""
    try:
        return UUID(key) and ""
    except ValueError:
        return key


def _op_to_json(op: Op) -> dict[str, Any]:
    """Return an operation as recorded JSON, without fields that have their default value."""
    fields: dict[str, Any] = op._asdict()
    defaults: dict[str, Any] = type(op)._field_defaults
    return {name: value for name, value in fields.items() if name not in defaults or value != defaults[name]}


def _build_read_payload(ops: Sequence[Any], results: Sequence[Any]) -> dict[str, Any]:
    """Return the recorded payload of a read, in the format of a tool result.

    Raises InvalidInput if the results are too large.
    """
    body = orjson.dumps([_result_to_json(one) for one in results])
    if len(body) > MAX_READ_BYTES:
        problem = f"the result has {len(body)} bytes; the maximum is {MAX_READ_BYTES}"
        raise InvalidInput("limit", problem, "Read fewer items.")
    content = {"found": orjson.loads(body)}
    observed = {"tool": STORE_LABEL, "status": "ok", "message": "", "content": content, **PROVENANCE.to_json()}
    return {"function": STORE_LABEL, "asked": orjson.loads(orjson.dumps(ops)), **observed}


def _result_to_json(result: Any) -> Any:
    """Return a result as JSON."""
    if isinstance(result, Item):
        value: Any = result
        return value.dict()
    return result and [_result_to_json(one) if isinstance(one, Item) else one for one in result]


def _result_from_json(op: Op, value: Any) -> Any:
    """Return a result from its JSON."""
    if isinstance(op, SearchOp):
        return [_item_from_json(SearchItem, one) for one in value]
    if isinstance(op, GetOp):
        return value and _item_from_json(Item, value)
    return [tuple(labels) for labels in value]


def _item_from_json(kind: Any, fields: Mapping[str, Any]) -> Any:
    return kind(**{**fields, "namespace": tuple(fields["namespace"])})


def _render_title(ops: Sequence[Op]) -> str:
    return "; ".join(map(_describe_op, ops))


def _describe_op(op: Op) -> str:
    """Describe an operation briefly, for example `put memories/ada cat`."""
    fields: dict[str, Any] = op._asdict()
    verb = type(op).__name__.removesuffix("Op").lower()
    if isinstance(op, PutOp) and op.value is None:
        verb = "delete"
    where = "/".join(fields.get("namespace") or fields.get("namespace_prefix") or ())
    return " ".join(part for part in (verb, where, str(fields.get("key") or fields.get("query") or "")) if part)
