"""IterResearch with a language model, in JSON and in plain text, through real workers, litellm and the wire."""

import json
from pathlib import Path

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest
from offing.storage.runs import RunRow
from offing_workers.replay import replay_run
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion, Reply
from tests.model_provider.server import WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.test_models import REPORT, TEXT, reported, says

BEGUN = {"report": "Nothing yet.", "action": {"tool": "search_library", "args": {"query": "third tower"}}}
DONE = {"report": "Smeaton built it [E1].", "answer": REPORT}
FIRST_TURN = (
    '<report>Nothing yet.</report>\n<tool_call>{"name": "search_library", "arguments": {"query": "third tower"}}'
    "</tool_call>"
)
LAST_TURN = (
    "<think>It is there.</think>\n<report>Smeaton built it [E1].</report>\n<answer>Smeaton built it [E1].\n"
    '- It was Smeaton. [E1: "John Smeaton built the third Eddystone tower"]</answer>'
)


async def run_question(platform: Platform, folder: Path, *replies: Reply, form: str = "", turns: int = 4) -> RunRow:
    (folder / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, folder)
    async with WireServer(scripted(*replies)) as server:
        choice = EngineConfig(
            engine="litellm",
            model="openai/stand-in",
            api_base=server.url,
            prompt_format=form,
            options={} if form else {"output_mode": "text"},
        )
        request = RunRequest(
            "Who built the third tower?",
            graph="iterresearch",
            budget=Budget(max_turns=turns),
            engines={"researcher": choice},
        )
        return await platform.ended((await platform.submit(request)).id)


async def test_a_model_researches_in_rounds_and_is_named_as_the_author(
    shared_platform: Platform, tmp_path: Path
) -> None:
    ended = await run_question(shared_platform, tmp_path, says(BEGUN), says(DONE))
    report = await reported(shared_platform, ended)
    assert (ended.stop_reason, ended.usage.turns) == (StopReason.ANSWERED, 2)
    assert report.written_by == "openai/stand-in"
    assert any(s.is_supported for s in report.sentences())
    assert {c.quote for c in report.citations} == {"John Smeaton built"}


async def test_an_answer_in_the_first_round_is_rejected_and_asked_again(
    shared_platform: Platform, tmp_path: Path
) -> None:
    ended = await run_question(shared_platform, tmp_path, says(DONE), says(BEGUN), says(DONE))
    steps = await shared_platform.steps(ended.id)
    assert (ended.stop_reason, ended.usage.turns) == (StopReason.ANSWERED, 2)
    assert [s.payload["report"] for s in steps if s.kind is StepKind.NOTE] == [BEGUN["report"], DONE["report"]]


async def test_a_model_that_never_keeps_to_the_form_leaves_a_partial_report(
    shared_platform: Platform, tmp_path: Path
) -> None:
    long = {**BEGUN, "report": "word " * 5_000}
    ended = await run_question(shared_platform, tmp_path, says(BEGUN), *[says(long)] * 3)
    report = await reported(shared_platform, ended)
    failure = next(s for s in await shared_platform.steps(ended.id) if s.kind is StepKind.FAILURE)
    assert ended.stop_reason is StopReason.INVALID_OUTPUT
    assert "write a shorter one" in json.dumps(failure.payload)
    assert "Smeaton" in str(report.sentences())
    assert "without a model" in report.written_by


async def test_a_model_without_tool_calling_is_asked_in_plain_text(shared_platform: Platform, tmp_path: Path) -> None:
    ended = await run_question(
        shared_platform, tmp_path, Completion(text=FIRST_TURN), Completion(text=LAST_TURN), form="text"
    )
    report = await reported(shared_platform, ended)
    assert ended.stop_reason is StopReason.ANSWERED
    assert "John Smeaton built the third Eddystone tower" in {c.quote for c in report.citations}


SEARCHES = "".join(
    f'\n<tool_call>{{"name": "search_library", "arguments": {{"query": "{query}"}}}}</tool_call>'
    for query in ("third tower", "no such words")
)
LISTED = '\n<tool_call>{"name": "search_library", "arguments": {"query": ["third tower", "no such words"]}}</tool_call>'
BEGUN_TEXT = "<report>Nothing yet.</report>"
BATCH_IN_JSON = {**BEGUN, "more_actions": [{"tool": "search_library", "args": {"query": "no such words"}}]}
LIST_IN_JSON = {
    "report": "Nothing yet.",
    "action": {"tool": "search_library", "args": {"query": ["third tower", "no such words"]}},
}
BATCHES: dict[str, tuple[str, Completion, Completion]] = {
    "blocks": ("text", Completion(text=BEGUN_TEXT + SEARCHES), Completion(text=LAST_TURN)),
    "a list of queries": (
        "text",
        Completion(text=BEGUN_TEXT + LISTED),
        Completion(text=LAST_TURN),
    ),
    "JSON": ("", says(BATCH_IN_JSON), says(DONE)),
    "a list of queries in JSON": ("", says(LIST_IN_JSON), says(DONE)),
}


@pytest.mark.parametrize("way", BATCHES)
async def test_several_searches_of_a_round_are_made_at_once_and_recorded_each(
    shared_platform: Platform, tmp_path: Path, way: str
) -> None:
    form, first, last = BATCHES[way]
    ended = await run_question(shared_platform, tmp_path, first, last, form=form)
    results = [s for s in await shared_platform.steps(ended.id) if s.kind is StepKind.TOOL_RESULT]
    report = await reported(shared_platform, ended)
    assert (ended.stop_reason, ended.usage.turns) == (StopReason.ANSWERED, 2)
    numbered = sorted(results, key=lambda step: step.payload["batch"]["number"])
    assert [step.payload["args"]["query"] for step in numbered] == ["third tower", "no such words"]
    assert {step.turn for step in results} == {1}
    assert report.citations
    replayed = await replay_run(shared_platform.database, shared_platform.tenant, ended.id, open_registry())
    assert replayed.is_same, replayed.detail
