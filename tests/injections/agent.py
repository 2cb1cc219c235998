"""An agent that obeys whoever spoke last, on the platform's own toolbelt, before an outside world of a few pages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.blocks import plain
from offing.core.policy import Policy, Rule, default_policy
from offing.core.policy.copying import strings_in
from offing.core.step import CallKey, Step
from offing.core.tool import Effect, ToolOutput, ToolSpec
from offing.kernel.call_key import Call
from offing.kernel.taint import TaintTracker
from offing.kernel.tool_executor import ToolCallOutcome, ToolExecutor
from offing.sdk import ToolCall
from offing.tools import registry
from offing.tools.tool import FoundPassage, Tool, ToolArgs, ToolScope, Window
from offing.web.guard import Guard
from offing.web.provider import Hit
from offing.web.search import Found, Searched
from offing.web.url import Refused, target_of
from tests.injections.channels import FILLER, PAGE, Scene
from tests.injections.demands import QUESTION, SECRET, Demand
from tests.workers.journals import AJournal

SECOND = "https://tides.example.org/gauge"
PRIVATE, PUBLIC = UUID(int=1), UUID(int=2)
POLICY = Policy(
    rules=(
        *default_policy(web=True).rules,
        Rule(tool="mcp_tickets_find", others=True),
        Rule(tool="mcp_tickets_delete", others=True, tainted=False),
        Rule(tool="post_note", others=True),
        Rule(tool="send_mail", effect="ask", others=True),
    )
)
"""As an operator would write it: what changes things is allowed before a stranger was heard, or is asked about."""


async def somewhere(host: str, port: int) -> Sequence[str]:
    """Every name is public, but this machine's own."""
    return ("127.0.0.1",) if host == "localhost" else ("93.184.216.34",)


GUARD = Guard(somewhere)


@dataclass
class Outside:
    """The web, the library and the tools of others; what was done to them is in `effects`."""

    scene: Scene
    effects: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    async def read(self, url: str, start: int, length: int) -> Window | str:
        """Of the web, behind the platform's guard."""
        target = target_of(url)
        refused = target if isinstance(target, Refused) else await GUARD.addresses(target.host, target.port)
        if isinstance(refused, Refused):
            return f"404: {refused.problem}"
        self.effects.append(("fetch_page", url))
        if url == PAGE and self.scene.failure:
            return self.scene.failure
        text, title = (self.scene.page, self.scene.title) if url == PAGE else (FILLER, "Another page")
        return Window(PUBLIC, PUBLIC, title, url, start, text[start : start + length], len(text))

    async def search(self, query: str, limit: int) -> Searched:
        """Of the web."""
        hits = (Hit(PAGE, self.scene.hit_title, self.scene.snippet), Hit(SECOND, "The gauge", "A stone gauge."))
        return Searched(tuple(Found(hit, ("one",)) for hit in hits), {})


@dataclass
class Files:
    scene: Scene

    async def search(self, query: str, limit: int) -> tuple[FoundPassage, ...]:
        one = self.scene
        secret = FoundPassage(PRIVATE, PRIVATE, "Minutes", "minutes.md", "", 0, len(SECRET), SECRET, 1.0)
        told = FoundPassage(
            PUBLIC, PUBLIC, one.document_title, one.document_name, one.heading, 0, len(one.document), one.document, 0.5
        )
        return (secret, told) if "merger" in query else (told,)

    async def read(self, wanted: str, start: int, length: int) -> Window | None:
        text = self.scene.document
        return Window(PUBLIC, PUBLIC, self.scene.document_title, self.scene.document_name, start, text, len(text))

    async def suggest(self, wanted: str, limit: int) -> tuple[str, ...]:
        return ()


class Anything(ToolArgs, frozen=True):
    id: str = ""
    to: str = ""
    text: str = ""


class Theirs:
    """A tool that reaches others, and says what it is told to."""

    def __init__(self, outside: Outside, name: str, told: str, answer: str, **more: Any) -> None:
        self._outside, self._answer = outside, answer
        self.spec = ToolSpec(name, told, Anything, "ask", untrusted=True, outward=True, **more)

    async def __call__(self, args: Anything, scope: ToolScope) -> ToolOutput:
        self._outside.effects.append((self.spec.name, args.model_dump()))
        return ToolOutput({"answer": self._answer}, self.spec.name)


class Agent:
    """Reads everything that there is to read, and then does what the stranger wants."""

    def __init__(self, scene: Scene, journal: AJournal) -> None:
        self.outside = Outside(scene)
        self.taint = TaintTracker((QUESTION,), scene.earlier, None, self._messages)
        once = {"effect": Effect.AT_MOST_ONCE, "foreign": True}
        theirs: list[Tool] = [
            Theirs(self.outside, "mcp_tickets_find", scene.tool_told, scene.tool_answer, foreign=True),
            Theirs(self.outside, "mcp_tickets_delete", "Deletes.", "Gone.", **once),
            Theirs(self.outside, "post_note", "Posts.", "Posted."),
            Theirs(self.outside, "send_mail", "Sends.", "Sent."),
        ]
        tools = {tool.spec.name: tool for tool in (*registry("", web=True), *theirs)}
        self.taint.offered(tool.spec for tool in theirs)
        scope = ToolScope(journal.fence.tenant, journal.fence.run, "", Files(scene), web=self.outside)
        self._executor = ToolExecutor(tools, POLICY, scope, journal.journal, {}, taint=self.taint)
        self._calls = 0

    async def _messages(self) -> Sequence[Step]:
        return ()

    async def use(self, call: ToolCall) -> ToolCallOutcome:
        self._calls += 1
        return await self._executor.use(call, Call(CallKey(1, f"agent-{id(self)}", self._calls)))

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
        texts = [text for one in read for text in (one.message, *strings_in(one.content))]
        shown = [plain(text) for text in (*texts, scene.tool_told, *scene.earlier)]
        return any(call.args["url"] in text for call in demand.calls for text in shown)

    async def goes_on(self) -> list[ToolCallOutcome]:
        """Ordinary research after a stranger was heard."""
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
