"""Call keys: what identifies a call of a node across replays."""

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
from offing.kernel.call_path import CallPath, CallPathTracker


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a node makes now."""

    key: CallKey
    request: tuple[Any, ...] = ()
    """What is asked: models, drafts and plain data. Empty: the key alone says which call it is."""
    position: str = ""
    """What seeds and idempotency keys are made of: `PATH/ORDINAL`, where the ordinal counts the calls of the node."""

    def beside(self, name: str) -> "Call":
        """Return the call under the key beside this one, such as the response to an input request."""
        return replace(self, key=replace(self.key, path=f"{self.key.path}?{name}"), request=())

    @property
    def path(self) -> CallPath:
        """Superstep and task path of the node."""
        return self.key.superstep, self.key.path.partition("?")[0]

    @property
    def name(self) -> str:
        """The tool or role that is asked, or what else the call is."""
        return str(self.request[0]) if self.request else ""

    @property
    def seed_text(self) -> str:
        """What the seed of a sampled answer is drawn from, beside the run's own."""
        return f"{self.key.superstep}/{self.position}"

    def idempotency_key(self, run: UUID) -> str:
        """Return the key by which a tool recognizes a repeat of the same call."""
        path, _, ordinal = self.position.rpartition("/")
        return f"{run}:{self.key.superstep}:{path}:{ordinal}"


class CallKeys:
    """The keys of one epoch's calls. The order of calls that are made side by side does not matter.

    `by_content`: a call's position has the digest of its request, for graphs whose nodes promise no order of calls.
    """

    def __init__(self, paths: CallPathTracker, *, by_content: bool) -> None:
        self._paths, self._by_content = paths, by_content
        self._equals = Counter[tuple[int, str, str]]()
        self._calls = Counter[CallPath]()
        self._given_back: dict[tuple[int, str, str], list[int]] = {}
        """Ordinals of calls that came to nothing, by what they asked."""

    def next(self, *request: Any) -> Call:
        """Return the key of the call that the running node makes now."""
        return self._number(*self._paths.current(), request, by_content=self._by_content)

    def next_beside(self, *content: Any) -> Call:
        """Return the key of what the graph gives out beside its nodes while its superstep is under way."""
        return self._number(self._paths.latest, "beside", content, by_content=True)

    def _number(self, superstep: int, path: str, request: tuple[Any, ...], *, by_content: bool) -> Call:
        digest = digest_of(request)
        nth, free = _count(self._calls, (superstep, path)), self._given_back.get((superstep, path, digest))
        ordinal = heappop(free) if free else _count(self._equals, (superstep, path, digest))
        position = f"{path}#{digest}/{ordinal}" if by_content else f"{path}/{nth}"
        return Call(CallKey(superstep, path, ordinal, digest), request, position)

    def give_back(self, call: Call) -> None:
        """The call came to nothing that is on record, and the next equal one takes its place."""
        key = call.key
        heappush(self._given_back.setdefault((key.superstep, key.path, key.digest), []), key.ordinal)


def _count(counter: Counter[Any], key: Any) -> int:
    """How often something was counted before now."""
    before = counter[key]
    counter[key] += 1
    return before


def digest_of(request: Sequence[Any]) -> str:
    """Return the digest of models, drafts and plain data.

    Stored JSON has lost the order of its keys, so they are sorted.
    """
    plain = [one.model_dump(mode="json") if isinstance(one, BaseModel) else one for one in request]
    return blake2b(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS, default=str), digest_size=8).hexdigest()
