"""Faults that an author does not see while all goes well: a failing model, a misspelled key, a tool that does more."""

import asyncio
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel

from offing.sdk import EngineFailure, RunContext, SideEffect, ToolArgs, ToolCall, ToolOutput, tool
from offing.testing.graph_checks import find_graph_issues
from tests.unit.testing.test_graph_checks import good, looping
from tests.workers.graphs import SPEAKER, Ask

theirs = GenericFakeChatModel(messages=iter([]))


async def begun(state: Any, runtime: Any) -> tuple[RunContext, int, str]:
    """The turn's number, and why there is none."""
    ctx: RunContext = runtime.context
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    return ctx, turn, reason.value if (reason := ctx.stop_reason()) else ""


async def trusting(state: Any, runtime: Any) -> dict[str, Any]:
    ctx, turn, stop = await begun(state, runtime)
    if stop:
        return {"stop": stop}
    reply: Any = await ctx.call_role(SPEAKER, Ask(turn=turn), turn=turn)
    return {"turn": turn, "stop": "", "last": reply.seq if reply.output.word else 0}


async def careful(state: Any, runtime: Any) -> dict[str, Any]:
    ctx, turn, stop = await begun(state, runtime)
    if stop:
        return {"stop": stop}
    reply = await ctx.call_role(SPEAKER, Ask(turn=turn), turn=turn)
    return {"turn": turn, "last": 0 if isinstance(reply, EngineFailure) else reply.seq}


async def needing(state: Any, runtime: Any) -> dict[str, Any]:
    ctx, turn, stop = await begun(state, runtime)
    if stop:
        return {"stop": stop}
    result = await ctx.call_tool(ToolCall("search_library", {"query": "harbour", "limit": 2}), turn=turn)
    return {"turn": turn, "last": len(result.content["passages"][0]["text"])}


async def misspelt(state: Any, runtime: Any) -> dict[str, Any]:
    _, turn, stop = await begun(state, runtime)
    return {"stop": stop} if stop else {**{"turn": turn}, "lsat": turn}


async def with_another_model(state: Any, runtime: Any) -> dict[str, Any]:
    if state["turn"] > 1_000:
        theirs.invoke("Who are you?")
    return await good(state, runtime)


async def sleepy(state: Any, runtime: Any) -> dict[str, Any]:
    if state["turn"] > 1_000:
        time.sleep(1)  # noqa: ASYNC251
    return await good(state, runtime)


async def writing(state: Any, runtime: Any) -> dict[str, Any]:
    if state["turn"] > 1_000:
        open("notes.txt", "w").close()  # noqa: ASYNC230
    return await good(state, runtime)


async def test_a_graph_that_trusts_a_model_to_answer_is_found() -> None:
    (result,) = await find_graph_issues(looping(trusting))
    assert (result.rule, result.level) == ("failure", "error")
    assert "role 'speaker' returns no answer" in result.explanation
    assert await find_graph_issues(looping(careful)) == ()


async def test_a_graph_that_trusts_a_search_to_find_something_is_found() -> None:
    whys = [result.explanation for result in await find_graph_issues(looping(needing)) if result.rule == "failure"]
    assert len(whys) == 2
    assert "when nothing is found" in whys[0] + whys[1]
    assert "when tool 'search_library' fails" in whys[0] + whys[1]


@pytest.mark.parametrize(
    ("node", "rule", "message"),
    [
        (misspelt, "unknown-key", "'lsat'"),
        (with_another_model, "foreign-model", "GenericFakeChatModel"),
        (sleepy, "blocks-worker", "time.sleep"),
        (writing, "unsafe-to-repeat", "open"),
    ],
)
async def test_what_code_shows_is_found_at_its_line(node: Any, rule: str, message: str) -> None:
    (result,) = await find_graph_issues(looping(node))
    assert result.rule == rule
    assert message in result.explanation
    assert result.remedy


async def forgetful(state: Any, runtime: Any) -> dict[str, Any]:
    runtime.context.append_steps()
    return await good(state, runtime)


async def forgetful_by_name(state: Any, runtime: Any) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    ctx.save_note("place", "Saltmere")  # pyright: ignore[reportUnusedCoroutine]
    return await good(state, runtime)


async def forgetful_in_a_function(state: Any, runtime: Any) -> dict[str, Any]:
    begun(state, runtime)  # pyright: ignore[reportUnusedCoroutine]
    return await good(state, runtime)


async def forgetful_in_a_list(state: Any, runtime: Any) -> dict[str, Any]:
    if state["turn"] > 1_000:
        return {"last": [begun(state, runtime)]}
    return await good(state, runtime)


async def forgetful_of_an_answer(state: Any, runtime: Any) -> dict[str, Any]:
    if state["turn"] > 1_000:
        return {"last": begun(state, runtime).cr_code}
    return await good(state, runtime)


async def by_gathering(state: Any, runtime: Any) -> dict[str, Any]:
    messages = await asyncio.gather(good(state, runtime), *[good(state, runtime) for _ in range(0)])
    later = good(state, runtime)
    return {**messages[0], **await later}


class Tracker:
    def record(self) -> None: ...


async def with_a_tracker(state: Any, runtime: Any) -> dict[str, Any]:
    tracker = Tracker()
    tracker.record()
    return await good(state, runtime)


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize(
    "node", [forgetful, forgetful_by_name, forgetful_in_a_function, forgetful_in_a_list, forgetful_of_an_answer]
)
async def test_an_await_that_was_forgotten_is_found(node: Any) -> None:
    assert [result.rule for result in await find_graph_issues(looping(node)) if result.rule == "not-awaited"] == [
        "not-awaited"
    ]


async def test_an_await_that_stands_elsewhere_is_none_that_was_forgotten() -> None:
    for node in (with_a_tracker, by_gathering):
        assert await find_graph_issues(looping(node)) == ()


class Args(ToolArgs, frozen=True):
    path: str


@tool()
async def note(args: Args) -> ToolOutput:
    """Write a file."""
    with open(args.path, "w") as file:  # noqa: ASYNC230
        file.write("noted")
    return ToolOutput({}, "noted")


@tool()
async def erase(args: Args) -> ToolOutput:
    """Remove a file."""
    Path.unlink(Path(args.path))
    return ToolOutput({}, "gone")


@tool(side_effect=SideEffect.IDEMPOTENT)
async def declared(args: Args) -> ToolOutput:
    """Remove a file, and say so."""
    Path.unlink(Path(args.path))
    return ToolOutput({}, "gone")


@tool()
async def reading(args: Args) -> ToolOutput:
    """Read a file."""
    with open(args.path) as file:  # noqa: ASYNC230
        return ToolOutput({"text": file.read()}, "read")


@tool(side_effect=SideEffect.AT_MOST_ONCE)
async def waiting(args: Args) -> ToolOutput:
    """Run a program, and have everybody wait."""
    subprocess.run(["true"])  # noqa: ASYNC221
    return ToolOutput({}, "done")


@pytest.mark.parametrize(
    ("own", "rules"),
    [
        (note, {"effect"}),
        (erase, {"effect"}),
        (declared, set[str]()),
        (reading, set[str]()),
        (waiting, {"blocks-worker"}),
    ],
)
async def test_what_a_tool_does_beside_its_declaration_is_a_warning(own: Any, rules: set[str]) -> None:
    issues = await find_graph_issues(replace(looping(good), tools=(own,)))
    assert {(one.rule, one.level) for one in issues} == {(rule, "warning") for rule in rules}
