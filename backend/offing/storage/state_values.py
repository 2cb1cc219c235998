"""Encode the channel values of a graph's state by what is new in them, and put them together again.

A list that grew is stored by the items that it grew by, a mapping by the keys that changed, and anything else whole. A
small value stays in the checkpoint's own row. Each stored version names the version that it adds to, if any.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from offing.storage.plain_state import PlainStateSerializer

INLINE_BYTES = 256
"""A value of at most this size is stored with its checkpoint, each time anew."""

CHAIN_SLACK_BYTES = 4_096
"""A mapping is stored whole again where its chain would be larger than twice the mapping and this."""

SNAPSHOT = "snapshot:"
"""In front of the type of a value that LangGraph's DeltaChannel is rebuilt from."""

LIST, DICT = "list", "dict"


class ValueRow(NamedTuple):
    """A version of a channel's value as it is stored."""

    channel: str
    version: str
    base_version: str | None
    """The version that it adds to. `None` means that it is whole."""
    type: str
    items: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored version of a channel, to compare the next one with."""

    version: str
    """The channel's version in the checkpoint."""
    stored: str
    """The version under which the value is stored: an earlier one, where nothing has changed since."""
    type: str
    size: int
    """Bytes of the whole value."""
    digest: bytes
    items: int = 0
    keys: Mapping[str, bytes] | None = None
    """Digests of the values of a mapping. `None` where it cannot be stored by its keys."""
    chain: int = 0
    """Bytes of all versions that it is read from."""
    is_snapshot: bool = False

    def holds_same(self, other: "_Known") -> bool:
        return (self.type, self.size, self.digest, self.is_snapshot) == (
            other.type,
            other.size,
            other.digest,
            other.is_snapshot,
        )


@dataclass(frozen=True, slots=True)
class EncodedValues:
    """The channel values of one checkpoint."""

    inline: Mapping[str, Any]
    references: Mapping[str, str]
    """The stored version of each channel that is not inline."""
    rows: tuple[ValueRow, ...]
    """The versions that are new."""
    sizes: Mapping[str, int]
    """Bytes of each whole value that is not inline."""


class ValueEncoder:
    """Encodes the checkpoints of one claim, and remembers for each namespace what was stored last."""

    def __init__(self, serde: PlainStateSerializer) -> None:
        self._serde = serde
        self._known: dict[str, dict[str, _Known]] = {}

    def encode(self, ns: str, checkpoint: Checkpoint, *, by_new: bool) -> EncodedValues:
        """Split the values into what stays in the checkpoint's row and rows of their own.

        If `by_new` is false, all values stay, apart from snapshots of a DeltaChannel.
        """
        before, after = self._known.get(ns, {}), dict[str, _Known]()
        inline, rows = dict[str, Any](), list[ValueRow]()
        for channel, value in checkpoint["channel_values"].items():
            version = str(checkpoint["channel_versions"].get(channel, ""))
            if not version or not (by_new or isinstance(value, DeltaSnapshot)):
                inline[channel] = value
                continue
            version += "" if by_new else f"@{checkpoint['id']}"  # such versions are the same in two branches
            known = before.get(channel)
            if known is None or known.version != version:
                known, row = self._encoded(channel, version, value, known)
                rows += [row] if row else []
            if known is None:
                inline[channel] = value
            else:
                after[channel] = known
        self._known[ns] = after
        references = {channel: known.stored for channel, known in after.items()}
        return EncodedValues(inline, references, tuple(rows), {c: known.size for c, known in after.items()})

    def note(self, ns: str, versions: Mapping[str, Any], references: Mapping[str, str], rows: "ValueRows") -> None:
        """Remember what a checkpoint that was read refers to."""
        self._known[ns] = {
            channel: self._known_from(str(versions.get(channel, "")), stored, rows.chain(channel, stored))
            for channel, stored in references.items()
        }

    def forget(self, namespaces: Iterable[str]) -> None:
        """Forget what was stored under these namespaces."""
        for ns in namespaces:
            self._known.pop(ns, None)

    def _encoded(
        self, channel: str, version: str, value: Any, known: _Known | None
    ) -> tuple[_Known | None, ValueRow | None]:
        """The version as it is known from now on, and its row. A small value has neither, an equal one has no row."""
        is_snapshot = isinstance(value, DeltaSnapshot)
        inner: Any = value.value if is_snapshot else value
        if not is_snapshot and (inner is None or isinstance(inner, (bool, int, float))):
            return None, None
        type_, body = self._serde.dumps_typed(inner)
        if not is_snapshot and len(body) <= INLINE_BYTES:
            return None, None
        prefix = SNAPSHOT if is_snapshot else ""
        if type(inner) is list:
            found, row = self._list(version, body, len(cast(list[Any], inner)), known)
        elif type(inner) is dict:
            found, row = self._dict(version, body, cast(dict[Any, Any], inner), known)
        else:
            found = _Known(version, version, type_, len(body), _digest(body), chain=len(body))
            row = ValueRow("", version, None, type_, 0, body)
        found = replace(found, is_snapshot=is_snapshot)
        if known is not None and known.holds_same(found):
            return replace(known, version=version), None
        return found, row._replace(channel=channel, type=prefix + row.type)

    def _list(self, version: str, body: bytes, count: int, known: _Known | None) -> tuple[_Known, ValueRow]:
        items = memoryview(body)[_header_bytes(body) :]
        before = known.size if known is not None and known.type == LIST and known.size <= len(items) else 0
        digest = _digest_of(items[:before])
        grew = known is not None and before > 0 and digest.digest() == known.digest
        digest.update(items[before:])
        found = _Known(version, version, LIST, len(items), digest.digest(), count, chain=len(items))
        if known is None or not grew:
            return found, ValueRow("", version, None, LIST, count, bytes(items))
        return found, ValueRow("", version, known.stored, LIST, count - known.items, bytes(items[before:]))

    def _dict(self, version: str, body: bytes, value: dict[Any, Any], known: _Known | None) -> tuple[_Known, ValueRow]:
        keys = self._keys(value)
        found = _Known(version, version, DICT, len(body), _digest(body), keys=keys, chain=len(body))
        whole = ValueRow("", version, None, DICT, 0, body)
        if known is None or known.type != DICT or known.keys is None or keys is None:
            return found, whole
        removed = [key for key in known.keys if key not in keys]
        if list(keys) != [*(k for k in known.keys if k in keys), *(k for k in keys if k not in known.keys)]:
            return found, whole
        changed = {key: value[key] for key, digest in keys.items() if known.keys.get(key) != digest}
        patch = self._serde.dumps_typed([removed, changed])[1]
        chain = known.chain + len(patch)
        if chain > 2 * len(body) + CHAIN_SLACK_BYTES:
            return found, whole
        found = _Known(version, version, DICT, len(body), found.digest, keys=keys, chain=chain)
        return found, ValueRow("", version, known.stored, DICT, 0, patch)

    def _keys(self, value: Mapping[Any, Any]) -> dict[str, bytes] | None:
        if not all(type(key) is str for key in value):
            return None
        return {key: _digest(self._serde.dumps_typed(item)[1]) for key, item in value.items()}

    def _known_from(self, version: str, stored: str, chain: Sequence[ValueRow]) -> _Known:
        type_, is_snapshot = chain[0].type.removeprefix(SNAPSHOT), chain[-1].type.startswith(SNAPSHOT)
        stored_bytes, items, keys = sum(len(row.body) for row in chain), sum(row.items for row in chain), None
        body = b"".join(row.body for row in chain) if type_ == LIST else chain[0].body
        if type_ == DICT:
            value = _dict_of(self._serde, chain)
            body, keys = self._serde.dumps_typed(value)[1], self._keys(value)
        return _Known(version, stored, type_, len(body), _digest(body), items, keys, stored_bytes, is_snapshot)


class ValueRows:
    """Stored versions of channels, read together with all that they add to."""

    def __init__(self, rows: Iterable[ValueRow]) -> None:
        self._rows = {(row.channel, row.version): row for row in rows}

    def chain(self, channel: str, version: str) -> list[ValueRow]:
        """What a version is read from, the whole one first. Raises LookupError if a row is missing."""
        found, wanted = list[ValueRow](), cast("str | None", version)
        while wanted is not None:
            if (row := self._rows.get((channel, wanted))) is None:
                raise LookupError(f"Version {wanted} of {channel!r} is not stored.")
            found.append(row)
            wanted = row.base_version
        return found[::-1]

    def value(self, serde: PlainStateSerializer, channel: str, version: str) -> Any:
        """Return the value of a channel at a stored version."""
        chain = self.chain(channel, version)
        value = _VALUES.get(chain[0].type.removeprefix(SNAPSHOT), _whole)(serde, chain)
        return DeltaSnapshot(value) if chain[-1].type.startswith(SNAPSHOT) else value


def _whole(serde: PlainStateSerializer, chain: Sequence[ValueRow]) -> Any:
    return serde.loads_typed((chain[0].type.removeprefix(SNAPSHOT), chain[0].body))


def _list_of(serde: PlainStateSerializer, chain: Sequence[ValueRow]) -> list[Any]:
    body = list_body(sum(row.items for row in chain), b"".join(row.body for row in chain))
    return serde.loads_typed(("msgpack", body))


def _dict_of(serde: PlainStateSerializer, chain: Sequence[ValueRow]) -> dict[Any, Any]:
    value: dict[Any, Any] = serde.loads_typed(("msgpack", chain[0].body))
    for row in chain[1:]:
        removed, changed = serde.loads_typed(("msgpack", row.body))
        value = {key: item for key, item in value.items() if key not in removed} | changed
    return value


_VALUES: Mapping[str, Callable[[PlainStateSerializer, Sequence[ValueRow]], Any]] = {LIST: _list_of, DICT: _dict_of}


def list_items(body: bytes) -> bytes:
    """The items of a list in msgpack, one after another, without what says how many there are."""
    return body[_header_bytes(body) :]


def list_body(count: int, items: bytes) -> bytes:
    """The list in msgpack of so many items."""
    if count < 16:
        return bytes([0x90 | count]) + items
    return (b"\xdc" + count.to_bytes(2, "big") if count < 65_536 else b"\xdd" + count.to_bytes(4, "big")) + items


def _header_bytes(body: bytes) -> int:
    return {0xDC: 3, 0xDD: 5}.get(body[0], 1)


def _digest_of(body: bytes | memoryview) -> blake2b:
    return blake2b(body, digest_size=16)


def _digest(body: bytes | memoryview) -> bytes:
    return _digest_of(body).digest()
