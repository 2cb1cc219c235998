"""Call keys, which identify a call of a node across replays."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel

from offing.core.step import CallKey
from offing.kernel.call_path import PUSH_PREFIX, CallPath, CallPathTracker


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A call that a node makes now."""

    key: CallKey
    request: tuple[Any, ...] = ()
    """The request: models, drafts and plain data. If it is empty, the key alone identifies the call."""
    position: str = ""
    """Source of seeds and idempotency keys, as `PATH/ORDINAL`. The ordinal counts the calls of the node."""

    def side_call(self, name: str) -> "NodeCall":
        """Return a call with a side key of this one, such as the response to an input request."""
        return replace(self, key=replace(self.key, path=f"{self.key.path}?{name}"), request=())

    @property
    def call_path(self) -> CallPath:
        """Superstep and task path of the node."""
        return self.key.superstep, self.key.path.partition("?")[0]

    @property
    def name(self) -> str:
        """Name of the called tool or role, or of another kind of call."""
        return str(self.request[0]) if self.request else ""

    @property
    def seed_text(self) -> str:
        """Text from which, together with the run's seed, the seed of a sampled response is derived."""
        return f"{self.key.superstep}/{self.position}"

    def idempotency_key(self, run_id: UUID) -> str:
        """Return the key by which a tool recognizes a repetition of the same call."""
        path, _, ordinal = self.position.rpartition("/")
        return f"{run_id}:{self.key.superstep}:{path}:{ordinal}"


class CallKeys:
    """Builds the call keys of one epoch. The order of parallel calls does not matter.

    With `by_content`, the position of a call contains the digest of its request. Use it for graphs
    whose nodes do not guarantee an order of calls.
    """

    def __init__(self, paths: CallPathTracker, *, by_content: bool) -> None:
        self._paths, self._by_content = paths, by_content
        self._ordinals = Counter[tuple[int, str, str]]()
        self._call_counts = Counter[CallPath]()
        self._released_ordinals: dict[tuple[int, str, str], list[int]] = {}
        """Ordinals of abandoned calls, by their request."""

    def next_call(self, *request: Any) -> NodeCall:
        """Return the call that the running node makes now."""
        superstep, path = self._paths.current_path()
        node = self._paths.current_node() if path.startswith(PUSH_PREFIX) else ""
        return self._build_call(superstep, path, request, by_content=self._by_content, node=node)

    def next_side_call(self, *content: Any) -> NodeCall:
        """Return a call for output that the graph emits outside its nodes during the current superstep."""
        return self._build_call(self._paths.latest_superstep, "beside", content, by_content=True)

    def _build_call(
        self, superstep: int, path: str, request: tuple[Any, ...], *, by_content: bool, node: str = ""
    ) -> NodeCall:
        digest = digest_request(request)
        nth, free = (
            _next_ordinal(self._call_counts, (superstep, path)),
            self._released_ordinals.get((superstep, path, digest)),
        )
        ordinal = heappop(free) if free else _next_ordinal(self._ordinals, (superstep, path, digest))
        position = f"{path}#{digest}/{ordinal}" if by_content else f"{path}/{nth}"
        return NodeCall(CallKey(superstep, path, ordinal, digest, node), request, position)

    def release_ordinal(self, call: NodeCall) -> None:
        """Release the ordinal of a call that left no step, for the next call with an equal request."""
        key = call.key
        heappush(self._released_ordinals.setdefault((key.superstep, key.path, key.digest), []), key.ordinal)


def _next_ordinal(counter: Counter[Any], key: Any) -> int:
    """Return how often the key was counted before, and count it."""
    before = counter[key]
    counter[key] += 1
    return before


def digest_request(request: Sequence[Any]) -> str:
    """Return the digest of models, drafts and plain data.

    Keys are sorted, because stored JSON does not keep their order.
    """
    plain = [one.model_dump(mode="json") if isinstance(one, BaseModel) else one for one in request]
    return blake2b(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS, default=str), digest_size=8).hexdigest()
