"""What the tool executor does at each verdict: a call, a rejection, a question to a person, or another call."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel

from offing.core.step import CallKey, StepKind
from offing.core.tool import ToolOutput, ToolSpec, ToolStatus
from offing.core.tool_policy import ArgumentSource, Condition, Substitute, ToolPolicy, ToolRule, parse_stored_policy
from offing.kernel.call_key import NodeCall
from offing.kernel.human_input import ApprovalRequest, ApprovalResult
from offing.kernel.tool_executor import ToolCallOutcome, ToolExecutor, count_bytes
from offing.kernel.tool_restriction import restrict_tools
from offing.sdk import ToolCall
from offing.storage import runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.tools.tool import Tool, ToolScope
from tests.unit.world.test_tools import NoLibrary
from tests.workers.journal_builders import AJournal, a_journal


class Args(BaseModel, extra="forbid"):
    word: str
    times: int = 1


class SpeakingTool:
    """Repeats a word, and remembers what it was asked."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(name, "Says.", Args, "say")
        self.heard: list[Args] = []

    async def __call__(self, args: Args, scope: ToolScope) -> ToolOutput:
        self.heard.append(args)
        return ToolOutput({"said": args.word * args.times}, self.spec.name)


class Person:
    """Answers what it was told to."""

    def __init__(self, allowed: bool, words: str = "") -> None:
        self._answer, self.requests = ApprovalResult(allowed, words), list[ApprovalRequest]()

    async def approve(self, approval: ApprovalRequest, call: NodeCall) -> ApprovalResult:
        self.requests.append(approval)
        return self._answer


class Suspended(BaseException):
    """Stands for what leaves a node that waits."""


class Away:
    async def approve(self, approval: ApprovalRequest, call: NodeCall) -> ApprovalResult:
        raise Suspended


@pytest.fixture
async def database(app_url: str) -> AsyncIterator[Database]:
    async with Database(app_url, max_connections=4) as database:
        yield database


@pytest.fixture
async def journal(database: Database) -> AJournal:
    return await a_journal(database)


class Bench:
    """Two tools, `loud` and `soft`, under a policy."""

    def __init__(self, database: Database, journal: AJournal, *rules: ToolRule, **more: Any) -> None:
        self.loud, self.soft = SpeakingTool("loud"), SpeakingTool("soft")
        tools: dict[str, Tool] = {"loud": self.loud, "soft": self.soft}
        scope = ToolScope(journal.fence.tenant_id, journal.fence.run_id, "", NoLibrary())
        self.executor = ToolExecutor(tools, ToolPolicy(rules=rules), scope, journal.journal, {}, **more)
        self._calls = 0

    async def use(self, tool: str, **args: Any) -> ToolCallOutcome:
        self._calls += 1
        return await self.executor.execute_call(ToolCall(tool, args), NodeCall(CallKey(1, "node", self._calls)))


ASK_RULE = ToolRule(tool="loud", effect="ask", allow_other_args=True, name="loud words", reason="It wakes people.")
SOFTLY = Substitute(
    tool="soft", args=(ArgumentSource(arg="word", from_arg="word"), ArgumentSource(arg="times", value=1))
)
QUIET = ToolRule(tool="loud", effect="replace", substitute=SOFTLY, name="quiet, please")
SOFT = ToolRule(tool="soft", allow_other_args=True)


async def test_a_person_who_agrees_has_the_call_made(database: Database, journal: AJournal) -> None:
    person = Person(True)
    bench = Bench(database, journal, ASK_RULE, approver=person)
    outcome = await bench.use("loud", word="hey")
    assert (outcome.status, outcome.content, outcome.rule) == (ToolStatus.OK, {"said": "hey"}, "loud words")
    assert person.requests == [ApprovalRequest("loud", {"word": "hey", "times": 1}, "loud words", "It wakes people.")]


async def test_a_person_who_rejects_is_heard_by_the_model(database: Database, journal: AJournal) -> None:
    bench = Bench(database, journal, ASK_RULE, approver=Person(False, "Not at night."))
    outcome = await bench.use("loud", word="hey")
    assert (outcome.status, outcome.message) == (ToolStatus.DENIED, "loud is not allowed: Not at night.")
    assert bench.loud.heard == []
    assert bench.executor.call_counts == {}


async def test_where_nobody_can_be_asked_the_call_is_denied(database: Database, journal: AJournal) -> None:
    outcome = await Bench(database, journal, ASK_RULE).use("loud", word="hey")
    assert outcome.status is ToolStatus.DENIED


async def test_a_call_that_waits_for_a_person_is_neither_counted_nor_made(
    database: Database, journal: AJournal
) -> None:
    bench = Bench(database, journal, ASK_RULE, approver=Away())
    with pytest.raises(Suspended):
        await bench.use("loud", word="hey")
    assert (bench.executor.call_counts, bench.loud.heard) == ({}, [])


async def test_a_message_stands_for_a_call_that_is_not_made(database: Database, journal: AJournal) -> None:
    bench = Bench(database, journal, ToolRule(tool="loud", effect="replace", message="Whisper instead."))
    outcome = await bench.use("loud", word="hey")
    assert outcome.status is ToolStatus.DENIED
    assert "Whisper instead." in outcome.message
    assert bench.loud.heard == []


async def test_a_substitute_is_called_with_the_arguments_that_the_rule_gives_it(
    database: Database, journal: AJournal
) -> None:
    bench = Bench(database, journal, QUIET, SOFT)
    outcome = await bench.use("loud", word="hey", times=9)
    assert (outcome.status, outcome.content) == (ToolStatus.OK, {"said": "hey"})
    assert outcome.instead == ToolCall("soft", {"word": "hey", "times": 1})
    assert outcome.rule == "quiet, please; allow soft #2"
    assert (bench.loud.heard, bench.executor.call_counts) == ([], {"soft": 1})


async def test_a_substitute_is_decided_by_the_same_policy(database: Database, journal: AJournal) -> None:
    forbidden = ToolRule(tool="soft", effect="forbid", when=(Condition(arg="word", glob="*secret*"),))
    bench = Bench(database, journal, QUIET, SOFT, forbidden)
    assert (await bench.use("loud", word="a secret")).status is ToolStatus.DENIED
    assert (await Bench(database, journal, QUIET).use("loud", word="hey")).status is ToolStatus.DENIED
    assert bench.soft.heard == []


async def test_substitutes_of_substitutes_end_in_a_rejection(database: Database, journal: AJournal) -> None:
    back = Substitute(tool="loud", args=(ArgumentSource(arg="word", from_arg="word"),))
    bench = Bench(database, journal, QUIET, SOFT, ToolRule(tool="soft", effect="replace", substitute=back))
    outcome = await bench.use("loud", word="hey")
    assert outcome.status is ToolStatus.DENIED
    assert (bench.loud.heard, bench.soft.heard) == ([], [])


async def test_a_substitute_may_need_a_person_who_sees_the_call_that_would_be_made(
    database: Database, journal: AJournal
) -> None:
    person = Person(True)
    bench = Bench(database, journal, QUIET, ToolRule(tool="soft", effect="ask", allow_other_args=True), approver=person)
    assert (await bench.use("loud", word="hey")).status is ToolStatus.OK
    assert [(request.tool, request.args["word"]) for request in person.requests] == [("soft", "hey")]


async def test_bytes_that_a_tool_answered_count_against_its_rule(database: Database, journal: AJournal) -> None:
    size = count_bytes({"said": "hey"})
    bench = Bench(
        database,
        journal,
        ToolRule(tool="loud", allow_other_args=True, max_bytes=2 * size),
        received_bytes={"loud": size - 1},
    )
    statuses = [(await bench.use("loud", word="hey")).status for _ in range(3)]
    assert statuses == [ToolStatus.OK, ToolStatus.OK, ToolStatus.DENIED]


async def test_tools_of_which_something_may_happen_are_offered(database: Database, journal: AJournal) -> None:
    assert [spec.name for spec in Bench(database, journal, ASK_RULE).executor.specs] == ["loud"]
    forbid = ToolRule(tool="loud", effect="forbid")
    assert [spec.name for spec in Bench(database, journal, forbid, SOFT).executor.specs] == ["soft"]


def only(tool: str, *words: str) -> list[dict[str, Any]]:
    return [{"tool": tool, "allow_other_args": True, "when": [{"arg": "word", "one_of": list(words)}]}]


FIRST, SECOND = CallKey(1, "node", 0), CallKey(1, "other", 0)


async def stored(database: Database, journal: AJournal) -> ToolPolicy | None:
    async with database.transaction(LOCAL_TENANT) as connection:
        return parse_stored_policy((await runs.get_run(connection, journal.fence.run_id)).tool_policy)


async def test_a_restriction_holds_at_once_and_for_the_next_worker_of_the_run(
    database: Database, journal: AJournal
) -> None:
    bench = Bench(database, journal, ToolRule(tool="loud", allow_other_args=True), SOFT)
    assert await restrict_tools(journal.journal, bench.executor, only("loud", "hey"), NodeCall(FIRST), 1) == ""
    assert (await bench.use("loud", word="hey")).status is ToolStatus.OK
    assert (await bench.use("loud", word="ho")).status is ToolStatus.DENIED
    assert (await bench.use("soft", word="ho")).status is ToolStatus.OK
    assert await stored(database, journal) == bench.executor.tool_policy


async def test_a_widening_changes_nothing_and_is_on_record(database: Database, journal: AJournal) -> None:
    bench = Bench(database, journal, SOFT)
    before = await stored(database, journal)
    assert "not proved" in await restrict_tools(
        journal.journal, bench.executor, only("loud", "hey"), NodeCall(FIRST), 1
    )
    assert (await bench.use("loud", word="hey")).status is ToolStatus.DENIED
    assert await stored(database, journal) == before
    async with database.transaction(LOCAL_TENANT) as connection:
        (note,) = await steps.list_last_steps(connection, journal.fence.run_id, StepKind.NOTE, 5)
    assert (note.ok, note.payload["narrow"]) == (False, only("loud", "hey"))


async def test_two_narrowings_at_once_both_hold(database: Database, journal: AJournal) -> None:
    bench = Bench(database, journal, ToolRule(tool="loud", allow_other_args=True), SOFT)
    messages = await asyncio.gather(
        restrict_tools(journal.journal, bench.executor, only("loud", "hey"), NodeCall(FIRST), 1),
        restrict_tools(journal.journal, bench.executor, only("soft", "hm"), NodeCall(SECOND), 1),
    )
    assert messages == ["", ""]
    assert {(await bench.use(tool, word="ho")).status for tool in ("loud", "soft")} == {ToolStatus.DENIED}
    assert await stored(database, journal) == bench.executor.tool_policy
