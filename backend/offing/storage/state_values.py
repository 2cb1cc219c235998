"""Incremental encoding of the channel values of a graph's state.

A list that grew is stored as its new items, a mapping as its changed keys, and any other value
as a whole. A small value is stored in the checkpoint's own row. Each stored version names the
version on which it is based, if any.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from offing.storage.state_serializer import StateSerializer

MAX_INLINE_BYTES = 256
"""A value of at most this size is stored in each checkpoint's own row."""

CHAIN_SLACK_BYTES = 4_096
"""A mapping is stored as a whole again if its chain would be larger than twice the mapping plus
this number.
"""

SNAPSHOT_PREFIX = "snapshot:"
"""Prefix of the type of a value from which LangGraph's DeltaChannel is rebuilt."""

LIST, DICT = "list", "dict"


class ValueRow(NamedTuple):
    """A version of a channel's value as stored."""

    channel: str
    version: str
    base_version: str | None
    """The version on which this one is based. `None` means that it is complete."""
    type: str
    items: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _StoredVersion:
    """A stored version of a channel, with which the next one is compared."""

    version: str
    """The channel's version in the checkpoint."""
    stored_version: str
    """The version under which the value is stored. It is an earlier one if the value has not
    changed since.
    """
    type: str
    size_bytes: int
    """Size of the whole value."""
    digest: bytes
    item_count: int = 0
    keys: Mapping[str, bytes] | None = None
    """Digests of the values of a mapping. `None` if it cannot be stored by its keys."""
    chain_bytes: int = 0
    """Size of all versions that must be read to get the value."""
    is_snapshot: bool = False

    def has_same_value(self, other: "_StoredVersion") -> bool:
        return (self.type, self.size_bytes, self.digest, self.is_snapshot) == (
            other.type,
            other.size_bytes,
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
    """The new versions."""
    sizes_bytes: Mapping[str, int]
    """Size of each whole value that is not inline."""


class ValueEncoder:
    """Encodes the checkpoints of one claim.

    It caches the last stored version of each channel by namespace.
    """

    def __init__(self, serde: StateSerializer) -> None:
        self._serde = serde
        self._versions: dict[str, dict[str, _StoredVersion]] = {}

    def encode(self, ns: str, checkpoint: Checkpoint, *, incremental: bool) -> EncodedValues:
        """Split the values into inline values and values with separate rows.

        Inline values are stored in the checkpoint's row. If `incremental` is false, all values
        are inline, apart from snapshots of a DeltaChannel.
        """
        before, after = self._versions.get(ns, {}), dict[str, _StoredVersion]()
        inline, rows = dict[str, Any](), list[ValueRow]()
        for channel, value in checkpoint["channel_values"].items():
            version = str(checkpoint["channel_versions"].get(channel, ""))
            if not version or not (incremental or isinstance(value, DeltaSnapshot)):
                inline[channel] = value
                continue
            version += "" if incremental else f"@{checkpoint['id']}"  # such versions are equal in two branches
            stored = before.get(channel)
            if stored is None or stored.version != version:
                stored, row = self._encode_value(channel, version, value, stored)
                rows += [row] if row else []
            if stored is None:
                inline[channel] = value
            else:
                after[channel] = stored
        self._versions[ns] = after
        references = {channel: known.stored_version for channel, known in after.items()}
        return EncodedValues(inline, references, tuple(rows), {c: known.size_bytes for c, known in after.items()})

    def cache_versions(
        self, ns: str, versions: Mapping[str, Any], references: Mapping[str, str], rows: "ValueRows"
    ) -> None:
        """Cache the versions that a checkpoint refers to after it was read."""
        self._versions[ns] = {
            channel: self._stored_version_from_chain(
                str(versions.get(channel, "")), stored, rows.get_chain(channel, stored)
            )
            for channel, stored in references.items()
        }

    def drop_namespaces(self, namespaces: Iterable[str]) -> None:
        """Drop the cached versions of these namespaces."""
        for ns in namespaces:
            self._versions.pop(ns, None)

    def _encode_value(
        self, channel: str, version: str, value: Any, previous: _StoredVersion | None
    ) -> tuple[_StoredVersion | None, ValueRow | None]:
        """Return the stored version of a value, and its row.

        A small value has neither; an unchanged value has no row.
        """
        is_snapshot = isinstance(value, DeltaSnapshot)
        inner: Any = value.value if is_snapshot else value
        if not is_snapshot and (inner is None or isinstance(inner, (bool, int, float))):
            return None, None
        type_, body = self._serde.dumps_typed(inner)
        if not is_snapshot and len(body) <= MAX_INLINE_BYTES:
            return None, None
        prefix = SNAPSHOT_PREFIX if is_snapshot else ""
        if type(inner) is list:
            stored, row = self._encode_list(version, body, len(cast(list[Any], inner)), previous)
        elif type(inner) is dict:
            stored, row = self._encode_dict(version, body, cast(dict[Any, Any], inner), previous)
        else:
            stored = _StoredVersion(version, version, type_, len(body), _compute_digest(body), chain_bytes=len(body))
            row = ValueRow("", version, None, type_, 0, body)
        stored = replace(stored, is_snapshot=is_snapshot)
        if previous is not None and previous.has_same_value(stored):
            return replace(previous, version=version), None
        return stored, row._replace(channel=channel, type=prefix + row.type)

    def _encode_list(
        self, version: str, body: bytes, count: int, previous: _StoredVersion | None
    ) -> tuple[_StoredVersion, ValueRow]:
        items = memoryview(body)[_count_header_bytes(body) :]
        before = (
            previous.size_bytes
            if previous is not None and previous.type == LIST and previous.size_bytes <= len(items)
            else 0
        )
        digest = _start_digest(items[:before])
        grew = previous is not None and before > 0 and digest.digest() == previous.digest
        digest.update(items[before:])
        stored = _StoredVersion(version, version, LIST, len(items), digest.digest(), count, chain_bytes=len(items))
        if previous is None or not grew:
            return stored, ValueRow("", version, None, LIST, count, bytes(items))
        return stored, ValueRow(
            "", version, previous.stored_version, LIST, count - previous.item_count, bytes(items[before:])
        )

    def _encode_dict(
        self, version: str, body: bytes, value: dict[Any, Any], previous: _StoredVersion | None
    ) -> tuple[_StoredVersion, ValueRow]:
        keys = self._digest_items(value)
        stored = _StoredVersion(
            version, version, DICT, len(body), _compute_digest(body), keys=keys, chain_bytes=len(body)
        )
        whole = ValueRow("", version, None, DICT, 0, body)
        if previous is None or previous.type != DICT or previous.keys is None or keys is None:
            return stored, whole
        removed = [key for key in previous.keys if key not in keys]
        if list(keys) != [*(k for k in previous.keys if k in keys), *(k for k in keys if k not in previous.keys)]:
            return stored, whole
        changed = {key: value[key] for key, digest in keys.items() if previous.keys.get(key) != digest}
        patch = self._serde.dumps_typed([removed, changed])[1]
        chain = previous.chain_bytes + len(patch)
        if chain > 2 * len(body) + CHAIN_SLACK_BYTES:
            return stored, whole
        stored = _StoredVersion(version, version, DICT, len(body), stored.digest, keys=keys, chain_bytes=chain)
        return stored, ValueRow("", version, previous.stored_version, DICT, 0, patch)

    def _digest_items(self, value: Mapping[Any, Any]) -> dict[str, bytes] | None:
        if not all(type(key) is str for key in value):
            return None
        return {key: _compute_digest(self._serde.dumps_typed(item)[1]) for key, item in value.items()}

    def _stored_version_from_chain(
        self, version: str, stored_version: str, chain: Sequence[ValueRow]
    ) -> _StoredVersion:
        type_, is_snapshot = chain[0].type.removeprefix(SNAPSHOT_PREFIX), chain[-1].type.startswith(SNAPSHOT_PREFIX)
        stored_bytes, items, keys = sum(len(row.body) for row in chain), sum(row.items for row in chain), None
        body = b"".join(row.body for row in chain) if type_ == LIST else chain[0].body
        if type_ == DICT:
            value = _decode_dict(self._serde, chain)
            body, keys = self._serde.dumps_typed(value)[1], self._digest_items(value)
        return _StoredVersion(
            version, stored_version, type_, len(body), _compute_digest(body), items, keys, stored_bytes, is_snapshot
        )


class ValueRows:
    """Stored versions of channels, together with all versions on which they are based."""

    def __init__(self, rows: Iterable[ValueRow]) -> None:
        self._rows = {(row.channel, row.version): row for row in rows}

    def get_chain(self, channel: str, version: str) -> list[ValueRow]:
        """Return the rows from which a version is read, the complete one first.

        Raises `LookupError` if a row is missing.
        """
        chain, next_version = list[ValueRow](), cast("str | None", version)
        while next_version is not None:
            if (row := self._rows.get((channel, next_version))) is None:
                raise LookupError(f"Version {next_version} of {channel!r} is not stored.")
            chain.append(row)
            next_version = row.base_version
        return chain[::-1]

    def get_value(self, serde: StateSerializer, channel: str, version: str) -> Any:
        """Return the value of a channel at a stored version."""
        chain = self.get_chain(channel, version)
        value = _DECODERS.get(chain[0].type.removeprefix(SNAPSHOT_PREFIX), _decode_whole)(serde, chain)
        return DeltaSnapshot(value) if chain[-1].type.startswith(SNAPSHOT_PREFIX) else value


def _decode_whole(serde: StateSerializer, chain: Sequence[ValueRow]) -> Any:
    return serde.loads_typed((chain[0].type.removeprefix(SNAPSHOT_PREFIX), chain[0].body))


def _decode_list(serde: StateSerializer, chain: Sequence[ValueRow]) -> list[Any]:
    body = build_list(sum(row.items for row in chain), b"".join(row.body for row in chain))
    return serde.loads_typed(("msgpack", body))


def _decode_dict(serde: StateSerializer, chain: Sequence[ValueRow]) -> dict[Any, Any]:
    value: dict[Any, Any] = serde.loads_typed(("msgpack", chain[0].body))
    for row in chain[1:]:
        removed, changed = serde.loads_typed(("msgpack", row.body))
        value = {key: item for key, item in value.items() if key not in removed} | changed
    return value


_DECODERS: Mapping[str, Callable[[StateSerializer, Sequence[ValueRow]], Any]] = {LIST: _decode_list, DICT: _decode_dict}


def get_list_items(body: bytes) -> bytes:
    """Return the items of a msgpack list as bytes, without the header that contains their number."""
    return body[_count_header_bytes(body) :]


def build_list(item_count: int, items: bytes) -> bytes:
    """Build a msgpack list from the bytes of `item_count` items."""
    if item_count < 16:
        return bytes([0x90 | item_count]) + items
    return (
        b"\xdc" + item_count.to_bytes(2, "big") if item_count < 65_536 else b"\xdd" + item_count.to_bytes(4, "big")
    ) + items


def _count_header_bytes(body: bytes) -> int:
    return {0xDC: 3, 0xDD: 5}.get(body[0], 1)


def _start_digest(body: bytes | memoryview) -> blake2b:
    return blake2b(body, digest_size=16)


def _compute_digest(body: bytes | memoryview) -> bytes:
    return _start_digest(body).digest()
