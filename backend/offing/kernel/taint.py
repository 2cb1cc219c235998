"""What of a run's context came from outside, as the tool policy needs it.

From then on what people wrote to the run goes to no stranger, either, whose text may have asked for it.
Everything follows from what is on record, so that a run that goes on after a loss is as tainted as before: the labels
and contents of its tool calls, what people wrote, and what earlier runs of the thread answered. It decides nothing.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from offing.core.policy import PolicyContext, Seen
from offing.core.policy.copying import MOST_SHINGLES, shingles, strings_in
from offing.core.provenance import Kind, Label, Origin, Trust, label_in
from offing.core.step import Step, StepKind
from offing.core.tool import ToolSpec, ToolStatus
from offing.core.url import Refused, Target, target_of
from offing.kernel.step_cache import StepCache
from offing.kernel.store import StepStore

Recorded = Callable[[], Awaitable[Iterable[Mapping[str, Any]]]]
"""Payloads of the run's finished tool calls."""
Messages = Callable[[], Awaitable[Sequence[Step]]]
"""What people have written to the run."""

SEARCH = Origin(Kind.TOOL, "web_search")
"""What the operator's search engines found."""
PLACE_FIELDS = frozenset({"url", "name"})
"""Fields of what was found, and of a page, that hold an address and are no text that a stranger wrote."""

MAX_CALLS = 10_000
"""Tool calls that are read back."""

_ADDRESS = re.compile(r"https?://[^\s<>\"'()\[\]{}|]+", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w@.-])(?:[\w-]+\.)+[^\W\d_][\w-]+(?![\w-])")
_MAIL = re.compile(r"(?<![^\s<>\"(),:;\\@])[^\s<>\"(),:;\\@]+@[^\s<>\"(),:;\\@]+")
_AFTER = ".,;:!?\u2026"


def open_taint_tracker(
    store: StepStore,
    cache: StepCache,
    question: str,
    earlier: Sequence[tuple[str, str]],
    excerpts: Iterable[str],
    *,
    fresh: bool,
) -> "TaintTracker":
    """Return the taint of a run in this claim.

    `earlier`: questions and answers of its thread. `excerpts`: texts of prompt libraries that its prompts show.
    `fresh`: the store has nothing to read back.
    """

    async def recorded() -> Sequence[Mapping[str, Any]]:
        stored = await store.last_steps(StepKind.TOOL, MAX_CALLS)
        notes = (*await store.last_steps(StepKind.NOTE, MAX_CALLS), *cache.list_unsaved(StepKind.NOTE))
        found = [step for step in notes if "content" in step.payload and "tool" in step.payload]
        return [step.payload for step in (*stored, *cache.list_unsaved(StepKind.TOOL), *found)]

    async def messages() -> Sequence[Step]:
        return await cache.messages(0)

    said = (question, *(asked for asked, _ in earlier))
    left = (*(answer for _, answer in earlier), *excerpts)
    return TaintTracker(said, left, None if fresh else recorded, messages)


class TaintTracker:
    """What one claim knows of a run's taint. It only ever grows.

    `said`: what the user asked, in this run and in earlier ones of its thread. `earlier`: text that earlier runs left
    and that this one's prompts show. `recorded` None: the run's first claim, with nothing to read back.
    """

    def __init__(
        self, said: Iterable[str], earlier: Iterable[str], recorded: Recorded | None, messages: Messages
    ) -> None:
        self._recorded, self._messages, self._heard = recorded, messages, 0
        self._shingles: set[int] = set()
        self._whole, self._tainted = True, False
        self._hosts: set[str] = set()
        self._addresses: set[str] = set()
        self._words: list[str] = []
        """What people wrote, without addresses, until the run is tainted: then it is not for strangers, either."""
        self._named(said)
        for text in earlier:
            self.read(text)

    async def current_taint(self, used: Mapping[str, int], received: Mapping[str, int]) -> PolicyContext:
        """The run as it is now. The first time, what earlier claims recorded is read back."""
        if self._recorded is not None:
            for payload in await self._recorded():
                self.note(payload["tool"], payload["status"], payload, label_in(payload))
            self._recorded = None
        said = await self._messages()
        self._named(str(step.payload.get("text") or step.title) for step in said[self._heard :])
        self._heard = len(said)
        if self._tainted:
            self.read()
        return PolicyContext(
            used=used,
            received=received,
            tainted=self._tainted,
            seen=Seen(self._shingles, self._whole),
            known_hosts=frozenset(self._hosts),
            known_addresses=frozenset(self._addresses),
        )

    def note(self, tool: str, status: str, said: Mapping[str, Any], label: Label) -> None:
        """A finished call. `said`: its `content` and `message`. Its label names the tool that really ran."""
        content: Mapping[str, Any] = said.get("content") or {}
        if status == ToolStatus.OK:
            self._found(_places(label.origin, content))
        if label.trust is Trust.UNTRUSTED:
            self.read(str(said.get("message") or ""), *strings_in(_theirs(label.origin, content)))

    def offered(self, specs: Iterable[ToolSpec]) -> None:
        """Tools that the run's prompts show. What strangers say of theirs is untrusted text like any other."""
        for spec in specs:
            if spec.foreign:
                self.read(spec.description, *strings_in(spec.args.model_json_schema()))

    def read(self, *texts: str) -> None:
        """Untrusted text has entered the context."""
        self._tainted, words, self._words = True, self._words, []
        for text in (*words, *texts):
            if not self._whole:
                return
            self._shingles |= shingles(text)
            if len(self._shingles) > MOST_SHINGLES:
                self._shingles, self._whole = set(), False

    def _named(self, texts: Iterable[str]) -> None:
        """Places that a person named, whole addresses or names alone."""
        for text in texts:
            self._words.append(_ADDRESS.sub(" ", text))
            self._found(found.rstrip(_AFTER) for found in _ADDRESS.findall(text))
            self._hosts |= {mail.rstrip(_AFTER).lower() for mail in _MAIL.findall(text)}
            self._hosts |= {t.host for name in _NAME.findall(text) if isinstance(t := _at(name), Target)}

    def _found(self, addresses: Iterable[str]) -> None:
        targets = [t for address in addresses if isinstance(t := target_of(address), Target)]
        self._addresses |= {target.url for target in targets}
        self._hosts |= {target.host for target in targets}


def _at(name: str) -> Target | Refused:
    return target_of(f"https://{name}/")


def _places(origin: Origin, content: Mapping[str, Any]) -> list[str]:
    """Addresses that a search gave, or that a page was read at."""
    if origin == SEARCH:
        return [str(one["url"]) for one in content.get("results", ())]
    return [str(content["name"])] if origin.kind is Kind.WEB else []


def _theirs(origin: Origin, content: Mapping[str, Any]) -> object:
    """What strangers wrote of an observation. Where the platform has no part in its form: all of it."""
    if origin != SEARCH and origin.kind is not Kind.WEB:
        return content
    told = [content, *content.get("results", ())]
    return [{k: v for k, v in one.items() if k not in PLACE_FIELDS and k != "results"} for one in told]
