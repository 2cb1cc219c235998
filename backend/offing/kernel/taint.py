"""Tracks the untrusted text in the context of a run, for the tool policy.

As soon as the run is tainted, user texts count as untrusted text, too, because untrusted text may
ask the run to send them to a third party. The taint is derived from recorded data only, so it is
the same after a crash: from labels and contents of tool results, from user messages, and from
answers of earlier runs of the thread. This module makes no decisions about tool calls.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from offing.core.provenance import Origin, OriginKind, ProvenanceLabel, TrustLevel, parse_label
from offing.core.step import Step, StepKind
from offing.core.tool import ToolSpec, ToolStatus
from offing.core.tool_policy import ToolCallContext, UntrustedShingles
from offing.core.tool_policy.copy_detection import MAX_SHINGLES, compute_shingles, iter_strings
from offing.core.url import InvalidUrl, ParsedUrl, parse_url
from offing.kernel.run_store import StepStore
from offing.kernel.step_cache import StepCache

RecordedResultsLoader = Callable[[], Awaitable[Iterable[Mapping[str, Any]]]]
"""Returns the payloads of the run's finished tool calls."""
UserMessagesLoader = Callable[[], Awaitable[Sequence[Step]]]
"""Returns the user messages of the run."""

WEB_SEARCH_ORIGIN = Origin(OriginKind.TOOL, "web_search")
"""Origin of results of the configured search engines."""
ADDRESS_FIELDS = frozenset({"url", "name"})
"""Fields of search results and web pages that contain an address instead of third-party text."""

MAX_TOOL_RESULTS = 10_000
"""Maximum number of tool results that are read back."""

_ADDRESS = re.compile(r"https?://[^\s<>\"'()\[\]{}|]+", re.IGNORECASE)
_HOST_NAME = re.compile(r"(?<![\w@.-])(?:[\w-]+\.)+[^\W\d_][\w-]+(?![\w-])")
_EMAIL = re.compile(r"(?<![^\s<>\"(),:;\\@])[^\s<>\"(),:;\\@]+@[^\s<>\"(),:;\\@]+")
_TRAILING_PUNCTUATION = ".,;:!?\u2026"


def build_taint_tracker(
    store: StepStore,
    cache: StepCache,
    question: str,
    earlier_turns: Sequence[tuple[str, str]],
    excerpts: Iterable[str],
    *,
    is_first_claim: bool,
) -> "TaintTracker":
    """Return the taint tracker of a run for this claim.

    `earlier_turns` are the questions and answers of its thread. `excerpts` are texts of prompt
    libraries in its prompts. With `is_first_claim`, the store has nothing to read back.
    """

    async def recorded() -> Sequence[Mapping[str, Any]]:
        stored = await store.last_steps(StepKind.TOOL_RESULT, MAX_TOOL_RESULTS)
        notes = (*await store.last_steps(StepKind.NOTE, MAX_TOOL_RESULTS), *cache.list_unsaved(StepKind.NOTE))
        results = [step for step in notes if "content" in step.payload and "tool" in step.payload]
        return [step.payload for step in (*stored, *cache.list_unsaved(StepKind.TOOL_RESULT), *results)]

    async def messages() -> Sequence[Step]:
        return await cache.get_user_messages(0)

    user_texts = (question, *(earlier_question for earlier_question, _ in earlier_turns))
    earlier_texts = (*(answer for _, answer in earlier_turns), *excerpts)
    return TaintTracker(user_texts, earlier_texts, None if is_first_claim else recorded, messages)


class TaintTracker:
    """The taint of a run in one claim. It can only grow.

    `user_texts` are the user's questions in this run and in earlier runs of its thread.
    `untrusted_texts` are texts of earlier runs in the prompts of this run. `load_recorded` is `None` in
    the first claim of the run, which has nothing to read back.
    """

    def __init__(
        self,
        user_texts: Iterable[str],
        untrusted_texts: Iterable[str],
        load_recorded: RecordedResultsLoader | None,
        load_messages: UserMessagesLoader,
    ) -> None:
        self._recorded, self._messages, self._message_count = load_recorded, load_messages, 0
        self._shingles: set[int] = set()
        self._is_complete, self._tainted = True, False
        self._hosts: set[str] = set()
        self._addresses: set[str] = set()
        self._user_texts: list[str] = []
        """User texts without addresses, until the run is tainted. Then they count as untrusted text."""
        self._add_user_texts(user_texts)
        for text in untrusted_texts:
            self.add_untrusted_text(text)

    async def current_taint(self, call_counts: Mapping[str, int], received_bytes: Mapping[str, int]) -> ToolCallContext:
        """Return the current taint of the run. The first call reads the tool results of earlier claims."""
        if self._recorded is not None:
            for payload in await self._recorded():
                self.add_tool_result(payload["tool"], payload["status"], payload, parse_label(payload))
            self._recorded = None
        user_messages = await self._messages()
        self._add_user_texts(
            str(step.payload.get("text") or step.title) for step in user_messages[self._message_count :]
        )
        self._message_count = len(user_messages)
        if self._tainted:
            self.add_untrusted_text()
        return ToolCallContext(
            call_counts=call_counts,
            received_bytes=received_bytes,
            is_tainted=self._tainted,
            untrusted_shingles=UntrustedShingles(self._shingles, self._is_complete),
            known_hosts=frozenset(self._hosts),
            known_urls=frozenset(self._addresses),
        )

    def add_tool_result(self, tool: str, status: str, payload: Mapping[str, Any], provenance: ProvenanceLabel) -> None:
        """Add a finished tool call. `payload` has its `content` and `message`.

        The provenance label names the tool that was really executed.
        """
        content: Mapping[str, Any] = payload.get("content") or {}
        if status == ToolStatus.OK:
            self._add_addresses(_list_addresses(provenance.origin, content))
        if provenance.trust is TrustLevel.UNTRUSTED:
            self.add_untrusted_text(
                str(payload.get("message") or ""),
                *iter_strings(_select_third_party_content(provenance.origin, content)),
            )

    def add_tool_specs(self, specs: Iterable[ToolSpec]) -> None:
        """Add the tools in the run's prompts. Descriptions of third-party tools are untrusted text."""
        for spec in specs:
            if spec.third_party:
                self.add_untrusted_text(spec.description, *iter_strings(spec.args.model_json_schema()))

    def add_untrusted_text(self, *texts: str) -> None:
        """Mark the run as tainted by these texts."""
        self._tainted, words, self._user_texts = True, self._user_texts, []
        for text in (*words, *texts):
            if not self._is_complete:
                return
            self._shingles |= compute_shingles(text)
            if len(self._shingles) > MAX_SHINGLES:
                self._shingles, self._is_complete = set(), False

    def _add_user_texts(self, texts: Iterable[str]) -> None:
        """Add the addresses and host names in user texts."""
        for text in texts:
            self._user_texts.append(_ADDRESS.sub(" ", text))
            self._add_addresses(match.rstrip(_TRAILING_PUNCTUATION) for match in _ADDRESS.findall(text))
            self._hosts |= {mail.rstrip(_TRAILING_PUNCTUATION).lower() for mail in _EMAIL.findall(text)}
            self._hosts |= {
                t.host for name in _HOST_NAME.findall(text) if isinstance(t := _parse_host(name), ParsedUrl)
            }

    def _add_addresses(self, addresses: Iterable[str]) -> None:
        targets = [t for address in addresses if isinstance(t := parse_url(address), ParsedUrl)]
        self._addresses |= {target.url for target in targets}
        self._hosts |= {target.host for target in targets}


def _parse_host(name: str) -> ParsedUrl | InvalidUrl:
    return parse_url(f"https://{name}/")


def _list_addresses(origin: Origin, content: Mapping[str, Any]) -> list[str]:
    """Return the addresses of search results, or the address of a fetched page."""
    if origin == WEB_SEARCH_ORIGIN:
        return [str(one["url"]) for one in content.get("results", ())]
    return [str(content["name"])] if origin.kind is OriginKind.WEB else []


def _select_third_party_content(origin: Origin, content: Mapping[str, Any]) -> object:
    """Return the third-party text of a tool result. For most tools, this is the whole content."""
    if origin != WEB_SEARCH_ORIGIN and origin.kind is not OriginKind.WEB:
        return content
    parts = [content, *content.get("results", ())]
    return [{k: v for k, v in one.items() if k not in ADDRESS_FIELDS and k != "results"} for one in parts]
