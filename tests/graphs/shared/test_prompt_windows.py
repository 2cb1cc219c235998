"""Prompts in windows from 8k to 200k: every graph works, and what a prompt does not show is counted in it."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from offing.core.report import Evidence
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tool import SourceSpan, ToolSpec
from offing.sdk import BoundaryReason, ChildFinding, ChildResult, Graph, Message, Role, RunStatus, RunUsage
from offing_graphs import agentflow, hiper, iterresearch, memact, research_team, router
from offing_graphs.agentflow.schemas import Verdict
from offing_graphs.agentflow.state import load_inputs
from offing_graphs.hiper.schemas import Action, Switch, Turn
from offing_graphs.iterresearch.schemas import Call, TurnPhase, build_output
from offing_graphs.memact.context import EDITING_CONFIG, SUMMARIZING_CONFIG, fit_config
from offing_graphs.memact.schemas import Act
from offing_graphs.router.schemas import Chance, Mode, Route
from offing_graphs.shared.fitted_calls import learn_context_tokens
from offing_graphs.shared.prompt_parts import render_passages, render_task, render_tool_cards
from offing_graphs.shared.prompt_room import Allowance
from offing_graphs.shared.schemas import Coverage, Plan, PriorExchange, TaskContext
from offing_graphs.shared.task import build_tool_cards
from offing_graphs.shared.text_reports import parse_report
from offing_graphs.shared.token_estimate import estimate_tokens
from tests.graphs.in_memory_context import SPECS, Engine, InMemoryContext, Library, SearchArgs, carry_out

WINDOWS = (8_192, 32_768, 200_000)
FILLER = "The readings are compared with those of the old stone gauge, and the harbour board keeps them in its tower. "
WORDS = ("alpha", "bravo", "cedar", "delta", "ember", "fjord", "gable", "heron", "inlet", "jetty", "knoll", "larch")
LIBRARY = Library(
    [
        (f"{word}-{n}.md", f"# Station {word} {n}\n\nStation {word} number {n} has a tide gauge. {FILLER * 8}\n")
        for word in WORDS
        for n in range(10)
    ]
)
QUESTION = "Which stations have a tide gauge, and how are its readings kept?"
MORE_TOOLS = tuple(
    ToolSpec(f"search_archive_{n}", "Search one of the archives of the harbour board. " * 8, SearchArgs, "search")
    for n in range(6)
)
SHOWN = re.compile(r"^Passage (E\d+) \(", re.MULTILINE)
OMITTED = re.compile(r"^(\d+) of (\d+) retrieved passages are not shown", re.MULTILINE)
NO_ROOM = re.compile(r"There was no room for (\d+) more passages")
CUT_RESULT = re.compile(r"^(\d+) of \d+ passages are not shown, because the result is too long", re.MULTILINE)


@dataclass
class CountingContext(InMemoryContext):
    """A run that notes how many passages were retrieved before each call of a role."""

    retrieved_counts: list[int] = field(default_factory=list[int])

    def see_anew(self, span: SourceSpan) -> None:
        """Retrieve a passage once more, as if it were another one."""
        known = LIBRARY.documents[span.text_id]
        number = len(self.collected) + 1
        self.collected.append(
            Evidence(f"E{number}", span, LIBRARY.text_of(span), known.id, known.title, "", known.name)
        )

    async def call_role(
        self, role: Role[Any, Any], inputs: Any, *, turn: int = 0, boundary: BoundaryReason | None = None
    ) -> Any:
        self.retrieved_counts.append(len(self.collected))
        return await super().call_role(role, inputs, turn=turn, boundary=boundary)


def searches() -> Callable[[], dict[str, Any]]:
    """Arguments of searches that find other passages each time."""
    numbers = count()
    return lambda: {"query": f"station {WORDS[next(numbers) % len(WORDS)]} tide gauge", "limit": 16}


def planner() -> Engine:
    args = searches()
    return lambda _inputs: Plan(
        justification="It is next.", context="", sub_goal="Find stations", tool="search_library", args=args()
    )


def continues(inputs: Any) -> Verdict:
    covered = tuple(Coverage(sub_question=q, covered=False, missing="stations") for q in inputs.analysis.sub_questions)
    return Verdict(analysis="Some stations are missing.", coverage=covered, stop=False)


def brief_report(_inputs: Any) -> Any:
    return parse_report("# Stations\nSome have one. [E1]", "Stations")


def hiper_agent() -> Engine:
    args = searches()

    def answer(inputs: Any) -> Turn:
        if inputs.reason:
            action = Action(tool="answer", report=brief_report(inputs))
        else:
            action = Action(tool="search_library", args=args())
        return Turn(switch=Switch.SWITCH, subgoal="stations", action=action)

    return answer


def several(args: Callable[[], dict[str, Any]], count: int) -> list[Call]:
    """Searches that are made at once. The last of several finds again what the first one found."""
    calls = [Call(tool="search_library", args=args()) for _ in range(max(1, count - 1))]
    return [*calls, Call(tool="search_library", args={**calls[0].args, "limit": 8})][:count]


def researcher(calls: int = 1) -> Engine:
    args = searches()

    def answer(inputs: Any) -> Any:
        report = "Stations have tide gauges [E1]. " * 150
        if inputs.phase is TurnPhase.FINAL:
            return build_output(inputs.phase, report=report, answer=brief_report(inputs))
        first, *more = several(args, calls)
        return build_output(inputs.phase, report=report, action=first, more_actions=tuple(more))

    return answer


def agent(calls: int = 1) -> Engine:
    args = searches()

    def answer(inputs: Any) -> Act:
        if inputs.request == "summary":
            return Act(summary="Stations have tide gauges [E1]. " * 20)
        if inputs.request == "answer":
            return Act(answer=brief_report(inputs))
        first, *more = several(args, calls)
        return Act(tool=first.tool, args=first.args, more_calls=tuple(more))

    return answer


def always_loops(_inputs: Any) -> Route:
    return Route(why="It needs many searches.", chances=(Chance(mode=Mode.AGENTIC, chance=1.0),))


def in_loop() -> dict[str, Engine]:
    return {"planner": planner(), "verifier": continues, "generator": brief_report, "router": always_loops}


GRAPHS: Mapping[str, tuple[Graph, Callable[[], dict[str, Engine]]]] = {
    "agentflow": (agentflow.graph, in_loop),
    "router": (router.graph, in_loop),
    "research_team": (research_team.graph, in_loop),
    "hiper": (hiper.graph, lambda: {"agent": hiper_agent()}),
    "iterresearch": (iterresearch.graph, lambda: {"researcher": researcher()}),
    "iterresearch, several calls": (iterresearch.graph, lambda: {"researcher": researcher(5)}),
    "memact": (memact.graph, lambda: {"agent": agent()}),
    "memact, several calls": (memact.graph, lambda: {"agent": agent(5)}),
    "supo": (memact.supo, lambda: {"agent": agent()}),
    "supo, several calls": (memact.supo, lambda: {"agent": agent(3)}),
}
RESEARCHERS = [name for name in GRAPHS if name.startswith("iterresearch")]
AGENTS = [name for name in GRAPHS if name.startswith(("memact", "supo"))]


async def run(name: str, window: int | None, *, real: int | None = None, **more: Any) -> CountingContext:
    graph, engines = GRAPHS[name]
    ctx = CountingContext(
        LIBRARY, QUESTION, Budget(max_turns=6), engines=engines(), specs=(*SPECS, *MORE_TOOLS), **more
    )
    ctx.context_tokens, ctx.real_context_tokens = window, real
    await carry_out(ctx, graph)
    return ctx


def failures(ctx: InMemoryContext) -> list[str]:
    return [step.payload["message"] for step in ctx.steps if step.kind is StepKind.FAILURE]


def text_of(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(m.text for m in messages)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("form", ["json", "text"])
async def test_no_prompt_is_too_long_for_its_window(name: str, window: int, form: str) -> None:
    formats = {role.name: "text" for role in GRAPHS[name][0].roles} if form == "text" else {}
    ctx = await run(name, window, real=window, prompt_formats=formats)
    assert failures(ctx) == []
    assert ctx.turns > (1 if window < 10_000 else 3)
    assert ctx.draft is not None
    assert ctx.draft.answer == "Some have one. [E1]"  # the agent wrote it, and not the fallback


@pytest.mark.parametrize("window", [None, *WINDOWS])
@pytest.mark.parametrize("name", ["agentflow", "router", "research_team", "hiper"])
async def test_every_retrieved_passage_is_shown_or_counted_as_not_shown(name: str, window: int | None) -> None:
    ctx = await run(name, window)
    counted = Counter[str]()
    for (role, messages), (_, inputs), retrieved in zip(
        ctx.prompts, ctx.role_inputs, ctx.retrieved_counts, strict=True
    ):
        if role in {"analyst", "lead", "router"}:
            continue
        total = len(inputs.passages) if role == "judge" else retrieved
        shown_count = len(set(SHOWN.findall(text_of(messages))))
        omitted = [(int(n), int(of)) for n, of in OMITTED.findall(text_of(messages))]
        assert shown_count + sum(n for n, _ in omitted) == total, (role, shown_count, omitted, total)
        assert all(of == total for _, of in omitted)
        assert sum(m.omitted_passages for m in messages) == sum(n for n, _ in omitted)
        counted[role] += sum(n for n, _ in omitted)
    assert len(ctx.collected) > 40
    assert window not in {None, 8_192} or counted["planner" if name != "hiper" else "agent"] > 0


@pytest.mark.parametrize("window", [None, *WINDOWS])
@pytest.mark.parametrize("name", RESEARCHERS)
async def test_a_researcher_sees_or_is_told_of_every_passage_of_the_last_results(name: str, window: int | None) -> None:
    ctx = await run(name, window)
    for (_, messages), (_, inputs) in zip(ctx.prompts, ctx.role_inputs, strict=True):
        total = len({p.id for result in inputs.results for p in result.passages})
        omitted = sum(map(int, NO_ROOM.findall(text_of(messages))))
        assert len(set(SHOWN.findall(text_of(messages).replace("(source", "(")))) + omitted == total
        assert sum(m.omitted_passages for m in messages) == omitted


def count_returned(ctx: InMemoryContext, turn: int) -> int:
    """The passages that the calls of a turn brought back, each counted once."""
    results = [s for s in ctx.steps if s.kind is StepKind.TOOL_RESULT and s.turn == turn]
    return len({tuple(span.values()) for result in results for span in result.payload["spans"]})


@pytest.mark.parametrize("window", [None, *WINDOWS])
@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_sees_or_is_told_of_every_passage_of_the_results_in_its_context(
    name: str, window: int | None
) -> None:
    ctx = await run(name, window)
    for (_, messages), (_, inputs) in zip(ctx.prompts, ctx.role_inputs, strict=True):
        for message, record in zip(messages[3::2], inputs.records, strict=True):
            omitted = sum(map(int, CUT_RESULT.findall(message.text)))
            assert len(SHOWN.findall(message.text)) + omitted == count_returned(ctx, record.turn)
            assert message.omitted_passages == omitted
        assert len(messages) == 2 + 2 * len(inputs.records)


async def test_larger_windows_show_more_evidence_and_memory() -> None:
    counts: list[int] = []
    for window in WINDOWS:
        ctx = await run("agentflow", window)
        last = next(messages for role, messages in reversed(ctx.prompts) if role == "generator")
        counts.append(len(SHOWN.findall(text_of(last))))
    assert 4 <= counts[0] < counts[1] <= counts[2] == 60


async def test_an_input_without_a_window_is_recorded_as_before() -> None:
    ctx = await run("agentflow", None)
    for _, inputs in ctx.role_inputs[:4]:
        assert "context_tokens" not in inputs.model_dump(mode="json")
    assert "left_out_passages" not in ctx.role_inputs[3][1].model_dump(mode="json")
    fitted = await run("agentflow", 8_192)
    assert fitted.role_inputs[0][1].model_dump(mode="json")["context_tokens"] == 8_192


@pytest.mark.parametrize("assumed", [None, 32_768])
@pytest.mark.parametrize("name", [name for name in GRAPHS if name not in AGENTS])
async def test_a_prompt_that_the_provider_rejects_is_shortened_once_and_the_run_continues(
    name: str, assumed: int | None
) -> None:
    ctx = await run(name, assumed, real=8_192)
    assert ctx.draft is not None
    assert ctx.draft.answer == "Some have one. [E1]"
    notes = [s for s in ctx.steps if s.kind is StepKind.NOTE and s.payload.get("context_tokens")]
    assert notes
    assert len(notes) == len(failures(ctx)) == len({note.payload["role"] for note in notes})  # each role fails once
    assert all(note.payload["context_tokens"] == 8_192 for note in notes)
    assert "8,192 tokens" in notes[0].title


@pytest.mark.parametrize("assumed", [None, 32_768])
@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_whose_prompt_is_rejected_goes_on_in_the_window_that_the_provider_names(
    name: str, assumed: int | None
) -> None:
    ctx = await run(name, assumed, real=8_192)
    assert len(failures(ctx)) == 1
    assert ctx.draft is not None
    assert ctx.draft.answer == "Some have one. [E1]"
    assert ctx.turns >= 4  # it went on in the smaller window
    assert [s.payload["context_tokens"] for s in ctx.steps if s.label == "window"] == [8_192]


@pytest.mark.parametrize("name", ["memact", "memact, several calls"])
async def test_an_agent_sees_its_room_is_warned_and_gets_a_last_call_to_answer(name: str) -> None:
    ctx = await run(name, 8_192, real=8_192)
    used = [
        (int(n.replace(",", "")), int(of.replace(",", "")))
        for n, of in re.findall(r"About ([\d,]+) of ([\d,]+) tokens", text_of(ctx.prompts[-2][1]))
    ]
    assert len(used) == ctx.turns - 2  # the last turn found the context full
    assert used == sorted(used)
    assert used[-1][0] <= used[-1][1]
    assert "It is nearly full" in text_of(ctx.prompts[-2][1])
    assert "It is nearly full" not in text_of(ctx.prompts[1][1])
    last = text_of(ctx.prompts[-1][1])
    assert "Do not call tools any more" in last
    assert re.search(r"latest results, which are not shown: r\d+\.", last)
    assert ctx.report.stop_reason == StopReason.CONTEXT_LIMIT


async def test_a_child_of_the_team_reports_into_a_small_window() -> None:
    def work(request: Any) -> Any:
        hits = LIBRARY.search(request.question, 20)
        finding = ChildFinding("Stations have tide gauges.")
        result = ChildResult(
            0,
            UUID(int=1),
            request.question,
            RunStatus.DONE,
            StopReason.ANSWERED,
            RunUsage(turns=2),
            "So.",
            "",
            (),
            (finding,),
        )
        return result, tuple(span for _, span, _ in hits)

    ctx = await run("research_team", 8_192, real=8_192, team=work)
    assert failures(ctx) == []
    assert ctx.draft is not None


def test_windows_have_room_for_the_answer() -> None:
    assert fit_config(EDITING_CONFIG, None) is EDITING_CONFIG
    for window in (8_192, 32_768, 200_000, 1_000_000):
        editing, summarizing = fit_config(EDITING_CONFIG, window), fit_config(SUMMARIZING_CONFIG, window)
        assert 0.4 * min(window, 160_000) < editing.max_prompt_tokens < 0.65 * window
        assert editing.max_observation_tokens < 0.25 * editing.max_context_tokens
        assert summarizing.max_prompt_tokens < 0.65 * window


async def test_passages_that_are_too_many_to_load_are_counted() -> None:
    ctx = CountingContext(LIBRARY, QUESTION)
    for _, span, *_ in (LIBRARY.passages * 3)[:260]:
        ctx.see_anew(span)
    inputs = await load_inputs(ctx, {**agentflow.graph.initial_state(ctx.run), "turn": 1})  # type: ignore[arg-type]
    assert (len(inputs.evidence), inputs.left_out_passages) == (240, 20)
    passages = render_passages((QUESTION,), inputs.evidence, Allowance(8_000), inputs.left_out_passages)
    assert passages.omitted + len(passages.parts) - 1 == 260
    assert passages.parts[-1].startswith(f"{passages.omitted} of 260 retrieved passages are not shown here: E")


def test_tools_are_described_briefly_where_the_window_is_small() -> None:
    cards = build_tool_cards((*SPECS, *MORE_TOOLS))
    full, brief = render_tool_cards(cards, 200_000), render_tool_cards(cards, 8_192)
    assert full == render_tool_cards(cards)
    assert estimate_tokens(*brief) < estimate_tokens(*full) / 1.5
    assert brief[-1] == "The descriptions of the tools are shortened, for lack of room."
    for card, text in zip(cards, brief, strict=False):
        assert all(f'"{name}"' in text for name in card.parameters["properties"])


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", 8_192),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4_096),
        ("prompt is too long: 210,000 tokens > 200,000 maximum", 200_000),
        ("too long", 10_286),
    ],
)
def test_the_window_is_read_from_the_error_or_follows_from_the_prompt(message: str, tokens: int) -> None:
    prompt = (Message("user", ("x" * 36_000,)),)
    assert learn_context_tokens(message, prompt, None) == tokens
    assert learn_context_tokens("too long", prompt, 8_000) == 6_000


def test_earlier_questions_and_messages_that_do_not_fit_are_counted() -> None:
    earlier = tuple(PriorExchange(question=f"Question {n}?", answer="So. " * 200) for n in range(9))
    task = TaskContext(question="What?", earlier=earlier, user_messages=tuple(f"Message {n}" for n in range(12)))
    text = "\n".join(render_task(task))
    assert "Question 0?" in text
    assert "2 earlier messages are not shown, for lack of room." in text
    small = "\n".join(render_task(task.model_copy(update={"context_tokens": 8_192})))
    assert "Question 0?" not in small
    assert "Question 8?" in small
    assert "7 earlier questions of this thread are not shown, for lack of room." in small
