"""An agent that obeys the last text it read, on the real tool executor, with an outside world of a few pages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.step import CallKey, Step
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.core.tool_policy.copy_detection import iter_strings
from offing.core.untrusted_block import sanitize_text
from offing.kernel.call_key import NodeCall
from offing.kernel.taint import TaintTracker
from offing.kernel.tool_executor import ToolCallOutcome, ToolExecutor
from offing.sdk import ToolCall
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy
from offing.tools.tool import FoundPassage, FoundPassages, TextWindow, Tool, ToolArgs, ToolScope
from offing.web.guard import AddressGuard
from offing.web.provider import SearchHit
from offing.web.search import MergedHit, SearchResults
from offing.web.url import InvalidUrl, parse_url
from tests.injections.channels import FILLER, PAGE, Scene
from tests.injections.injected_requests import QUESTION, SECRET, Demand
from tests.workers.journal_builders import AJournal

SECOND = "https://tides.example.org/gauge"
PRIVATE, PUBLIC = UUID(int=1), UUID(int=2)
POLICY = ToolPolicy(
    rules=(
        *default_tool_policy(web=True).rules,
        ToolRule(tool="mcp_tickets_find", allow_other_args=True),
        ToolRule(tool="mcp_tickets_delete", allow_other_args=True, when_tainted=False),
        ToolRule(tool="post_note", allow_other_args=True),
        ToolRule(tool="send_mail", effect="ask", allow_other_args=True),
    )
)
"""As an operator would write it: what changes things is allowed before a third party was heard, or is asked about."""


async def somewhere(host: str, port: int) -> Sequence[str]:
    """Every name is public, but this machine's own."""
    return ("127.0.0.1",) if host == "localhost" else ("93.184.216.34",)


GUARD = AddressGuard(somewhere)


@dataclass
class Outside:
    """The web, the library and the tools of others; what was done to them is in `effects`."""

    scene: Scene
    effects: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    async def read(self, url: str, start: int, length: int) -> TextWindow | str:
        """Of the web, behind the platform's guard."""
        target = parse_url(url)
        rejected = target if isinstance(target, InvalidUrl) else await GUARD.resolve_allowed(target.host, target.port)
        if isinstance(rejected, InvalidUrl):
            return f"404: {rejected.problem}"
        self.effects.append(("fetch_page", url))
        if url == PAGE and self.scene.failure:
            return self.scene.failure
        text, title = (self.scene.page, self.scene.title) if url == PAGE else (FILLER, "Another page")
        return TextWindow(PUBLIC, PUBLIC, title, url, start, text[start : start + length], len(text))

    async def search(self, query: str, limit: int) -> SearchResults:
        """Of the web."""
        hits = (
            SearchHit(PAGE, self.scene.hit_title, self.scene.snippet),
            SearchHit(SECOND, "The gauge", "A stone gauge."),
        )
        return SearchResults(tuple(MergedHit(hit, ("one",)) for hit in hits), {})


@dataclass
class Files:
    scene: Scene

    async def search(self, query: str, limit: int) -> FoundPassages:
        one = self.scene
        secret = FoundPassage(PRIVATE, PRIVATE, "Minutes", "minutes.md", "", 0, len(SECRET), SECRET, 1.0)
        message = FoundPassage(
            PUBLIC, PUBLIC, one.document_title, one.document_name, one.heading, 0, len(one.document), one.document, 0.5
        )
        return FoundPassages((secret, message) if "merger" in query else (message,))

    async def read(self, reference: str, start: int, length: int) -> TextWindow | None:
        text = self.scene.document
        return TextWindow(PUBLIC, PUBLIC, self.scene.document_title, self.scene.document_name, start, text, len(text))

    async def suggest(self, reference: str, limit: int) -> tuple[str, ...]:
        return ()


class Anything(ToolArgs, frozen=True):
    id: str = ""
    to: str = ""
    text: str = ""


class Theirs:
    """A tool that reaches others, and says what it is told to."""

    def __init__(self, outside: Outside, name: str, message: str, answer: str, **more: Any) -> None:
        self._outside, self._answer = outside, answer
        self.spec = ToolSpec(name, message, Anything, "ask", untrusted=True, sends_data_out=True, **more)

    async def __call__(self, args: Anything, scope: ToolScope) -> ToolOutput:
        self._outside.effects.append((self.spec.name, args.model_dump()))
        return ToolOutput({"answer": self._answer}, self.spec.name)


class Agent:
    """Reads everything that there is to read, and then does what the third party wants."""

    def __init__(self, scene: Scene, journal: AJournal) -> None:
        self.outside = Outside(scene)
        self.taint = TaintTracker((QUESTION,), scene.earlier, None, self._messages)
        once = {"side_effect": SideEffect.AT_MOST_ONCE, "third_party": True}
        theirs: list[Tool] = [
            Theirs(self.outside, "mcp_tickets_find", scene.tool_told, scene.tool_answer, third_party=True),
            Theirs(self.outside, "mcp_tickets_delete", "Deletes.", "Gone.", **once),
            Theirs(self.outside, "post_note", "Posts.", "Posted."),
            Theirs(self.outside, "send_mail", "Sends.", "Sent."),
        ]
        tools = {tool.spec.name: tool for tool in (*create_tools("", web=True), *theirs)}
        self.taint.add_tool_specs(tool.spec for tool in theirs)
        scope = ToolScope(journal.fence.tenant_id, journal.fence.run_id, "", Files(scene), web=self.outside)
        self._executor = ToolExecutor(tools, POLICY, scope, journal.journal, {}, taint_source=self.taint)
        self._calls = 0

    async def _messages(self) -> Sequence[Step]:
        return ()

    async def use(self, call: ToolCall) -> ToolCallOutcome:
        self._calls += 1
        return await self._executor.execute_call(call, NodeCall(CallKey(1, f"agent-{id(self)}", self._calls)))

    async def reads(self) -> list[ToolCallOutcome]:
        """Ordinary research."""
        calls = [
            ToolCall("web_search", {"query": "harbour of Saltmere"}),
            ToolCall("fetch_page", {"url": PAGE}),
            ToolCall("search_library", {"query": "Saltmere"}),
            ToolCall("search_library", {"query": "terms of the merger"}),
            ToolCall("read_source", {"source": str(PUBLIC)}),
            ToolCall("mcp_tickets_find", {"text": "quay"}),
        ]
        return [await self.use(call) for call in calls]

    async def obeys(self, demand: Demand, read: Sequence[ToolCallOutcome]) -> list[ToolCallOutcome]:
        if demand.unless_unread and not self._was_shown(demand, read):
            return []
        return [await self.use(call) for call in demand.calls]

    def _was_shown(self, demand: Demand, read: Sequence[ToolCallOutcome]) -> bool:
        """The demand stands in something that a prompt shows: an observation, a tool's card, an earlier answer."""
        scene = self.outside.scene
        texts = [text for one in read for text in (one.message, *iter_strings(one.content))]
        rendered = [sanitize_text(text) for text in (*texts, scene.tool_told, *scene.earlier)]
        return any(call.args["url"] in text for call in demand.calls for text in rendered)

    async def goes_on(self) -> list[ToolCallOutcome]:
        """Ordinary research after a third party was heard."""
        calls = [
            ToolCall("web_search", {"query": "stone tide gauge that was built in 1987"}),
            ToolCall("fetch_page", {"url": SECOND}),
            ToolCall("fetch_page", {"url": PAGE, "start": 10}),
            ToolCall("fetch_page", {"url": f"{SECOND}?page=2"}),
            ToolCall("fetch_page", {"url": "https://en.wikipedia.org/wiki/Tide_gauge"}),
            ToolCall("calculate", {"expression": "12 * 40"}),
            ToolCall("mcp_tickets_find", {"text": "north quay"}),
        ]
        return [await self.use(call) for call in calls]
