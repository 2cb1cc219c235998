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

ASKED = "#"
"""In a key's path before the digest of the request."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a node makes now."""

    key: CallKey
    request: tuple[Any, ...] = ()
    """What is asked: models, drafts and plain data. Empty: the key alone says which call it is."""

    def beside(self, name: str) -> "Call":
        """Return the call under the key beside this one, such as the response to an input request."""
        return Call(replace(self.key, path=f"{self.key.path}?{name}"))

    @property
    def path(self) -> CallPath:
        """Superstep and task path of the node."""
        return self.key.superstep, self.key.path.partition(ASKED)[0]

    @property
    def seed_text(self) -> str:
        """What the seed of a sampled answer is drawn from, beside the run's own."""
        return f"{self.key.superstep}/{self.key.path}/{self.key.ordinal}"

    def idempotency_key(self, run: UUID) -> str:
        """Return the key by which a tool recognizes a repeat of the same call."""
        return f"{run}:{self.key.superstep}:{self.key.path}:{self.key.ordinal}"


class CallKeys:
    """The keys of one epoch's calls, in the order in which nodes make them.

    `by_content`: the digest of the request belongs to the key.
    """

    def __init__(self, paths: CallPathTracker, *, by_content: bool) -> None:
        self._paths, self._by_content = paths, by_content
        self._counts = Counter[CallPath]()
        self._given_back: dict[CallPath, list[int]] = {}
        """Ordinals of calls that came to nothing, by place."""

    def next(self, *request: Any) -> Call:
        """Return the key of the call that the running node makes now."""
        superstep, path = self._paths.current()
        if self._by_content:
            path = f"{path}{ASKED}{digest_of(request)}"
        return self._number(superstep, path, request)

    def next_beside(self, *content: Any) -> Call:
        """Return the key of what the graph gives out beside its nodes while its superstep is under way."""
        return self._number(self._paths.latest, f"beside{ASKED}{digest_of(content)}", content)

    def _number(self, superstep: int, path: str, request: tuple[Any, ...]) -> Call:
        if free := self._given_back.get((superstep, path)):
            return Call(CallKey(superstep, path, heappop(free)), request)
        ordinal = self._counts[superstep, path]
        self._counts[superstep, path] += 1
        return Call(CallKey(superstep, path, ordinal), request)

    def give_back(self, call: Call) -> None:
        """The call came to nothing that is on record, and the next equal one takes its place."""
        heappush(self._given_back.setdefault((call.key.superstep, call.key.path), []), call.key.ordinal)


def digest_of(request: Sequence[Any]) -> str:
    """Return the digest of models, drafts and plain data.

    Stored JSON has lost the order of its keys, so they are sorted.
    """
    plain = [one.model_dump(mode="json") if isinstance(one, BaseModel) else one for one in request]
    return blake2b(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS, default=str), digest_size=8).hexdigest()
