"""Answers of models whose form alone is wrong, each in a run: nothing is asked again, and the record says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from offing.core.report import Layout
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import Step, StepKind
from offing.services.runs import RunRequest
from offing.storage import steps
from offing.storage.runs import RunRow
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion
from tests.model_provider.server import WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.test_models import ANALYSIS, COMMAND, PLAN, REPORT, TEXT, VERDICT, reported, run_question, through

QUOTE = "between 1756 and 1759"
TEXT_REPORT = f"""# The third tower
Smeaton built it [E1].

## Builder
John Smeaton built the tower. [E1: "John Smeaton built"] It took until 1759. [E1: "{QUOTE}"]"""


def answers(**changed: str | dict[str, Any]) -> list[Completion]:
    """The answers of the five roles in order, with some of them changed."""
    values: dict[str, Any] = {
        "analyst": ANALYSIS,
        "planner": PLAN,
        "executor": COMMAND,
        "verifier": VERDICT,
        "generator": TEXT_REPORT,
        **changed,
    }
    return [Completion(text=one if isinstance(one, str) else json.dumps(one)) for one in values.values()]


async def list_repairs(platform: Platform, run: RunRow) -> dict[str, list[str]]:
    """The repairs that the records of the run's role calls name, by role."""
    query = "select role, sampling -> 'repairs' from role_call where run_id = %s and sampling ? 'repairs'"
    async with platform.database.transaction(platform.tenant) as connection:
        rows = await (await connection.execute(query, (run.id,))).fetchall()
    return dict(rows)


async def list_tool_results(platform: Platform, run: RunRow) -> list[Step]:
    async with platform.database.transaction(platform.tenant) as connection:
        return list(await steps.list_steps_of_kinds(connection, run.id, [StepKind.TOOL_RESULT], 0, 10))


WRONG_FORMS: dict[str, tuple[str, str, str]] = {
    "a code fence around an object": ("planner", f"```json\n{json.dumps(PLAN)}\n```", "code_fence"),
    "prose around an object": ("planner", f"Here is the plan: {json.dumps(PLAN)}\nGood luck!", "prose_around"),
    "a trailing comma": ("verifier", json.dumps(VERDICT)[:-1] + ",}", "json_syntax"),
    "typographic quotation marks": ("verifier", "{“analysis”: “It is named.”, “stop”: true}", "json_syntax"),
    "a tool in other letters": ("planner", json.dumps(PLAN | {"tool": "functions.SearchLibrary"}), "choice"),
    "an extra field": ("planner", json.dumps(PLAN | {"confidence": 0.9}), "extra_field"),
    "one text in place of a list": ("analyst", json.dumps(ANALYSIS | {"sub_questions": "Who?"}), "single_value"),
    "a code fence around a report": ("generator", f"```markdown\n{TEXT_REPORT}\n```", "code_fence"),
    "words before a report": ("generator", f"Here is the report:\n\n{TEXT_REPORT}", "prose_around"),
    "bold headings": ("generator", TEXT_REPORT.replace("## Builder", "**Builder:**"), "headings"),
    "other citation styles": (
        "generator",
        TEXT_REPORT.replace('[E1: "John Smeaton built"]', "(E1: “John Smeaton built”)"),
        "citation_style",
    ),
    "a report as an object": ("generator", json.dumps(REPORT), "json_form"),
    "a report in the answer of an object": (
        "generator",
        json.dumps({"title": "T", "answer": TEXT_REPORT, "sections": []}),
        "report_in_answer",
    ),
    "a source's name in place of a passage": (
        "generator",
        TEXT_REPORT.replace('[E1: "John Smeaton built"]', '[tower.md: "John Smeaton built"]'),
        "evidence_id",
    ),
}


@pytest.mark.parametrize("fault", WRONG_FORMS)
async def test_a_wrong_form_is_repaired_without_a_second_call(
    shared_platform: Platform, tmp_path: Path, fault: str
) -> None:
    role, text, repair = WRONG_FORMS[fault]
    ended = await run_question(shared_platform, tmp_path, *answers(**{role: text}))
    report = await reported(shared_platform, ended)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert ended.usage.tokens == 5 * 18, "a second call was made"
    assert repair in (await list_repairs(shared_platform, ended)).get(role, [])
    assert [s.text for s in report.sentences() if s.is_supported][1] in {
        "John Smeaton built the tower.",
        "Smeaton built it.",
    }
    assert any(c.quote == "John Smeaton built" for c in report.citations)


async def test_a_right_form_has_no_repair_and_reads_as_prose(shared_platform: Platform, tmp_path: Path) -> None:
    ended = await run_question(shared_platform, tmp_path, *answers())
    report = await reported(shared_platform, ended)
    assert await list_repairs(shared_platform, ended) == {}
    (section,) = report.sections
    assert [s.layout for s in section.sentences] == [Layout.PARAGRAPH, Layout.CONTINUED]
    assert all(s.is_supported for s in report.sentences())


async def test_an_unknown_tool_is_asked_for_again_with_the_tools_that_there_are(
    shared_platform: Platform, tmp_path: Path
) -> None:
    replies = answers()
    replies.insert(1, Completion(text=json.dumps(PLAN | {"tool": "google"})))
    ended = await run_question(shared_platform, tmp_path, *replies)
    assert (ended.stop_reason, ended.usage.turns) == (StopReason.ANSWERED, 1)
    (result,) = await list_tool_results(shared_platform, ended)
    assert (result.payload["tool"], result.payload["status"]) == ("search_library", "ok")


async def test_an_extra_argument_is_left_out_and_the_result_says_so(shared_platform: Platform, tmp_path: Path) -> None:
    call = {"tool": "search_library", "args": {"query": "third Eddystone tower", "top_k": 5}}
    ended = await run_question(shared_platform, tmp_path, *answers(executor=call))
    (result,) = await list_tool_results(shared_platform, ended)
    assert (ended.stop_reason, result.payload["status"]) == (StopReason.ANSWERED, "ok")
    assert result.payload["args"] == {"query": "third Eddystone tower"}
    assert (result.payload["repairs"], result.payload["requested"]["args"]) == (["extra_field"], call["args"])
    assert "top_k" in result.payload["content"]["notices"][0]


async def test_a_passage_id_in_place_of_a_source_reads_that_source(shared_platform: Platform, tmp_path: Path) -> None:
    going_on = {"analysis": "More.", "stop": False}
    replies = answers(verifier=going_on)
    plan, call = PLAN | {"tool": "read_source"}, {"tool": "read_source", "args": {"source": "E1"}}
    more = answers(planner=plan, executor=call)
    ended = await run_question(shared_platform, tmp_path, *replies[:4], *more[1:])
    results = await list_tool_results(shared_platform, ended)
    assert [one.payload["status"] for one in results] == ["ok", "ok"]
    assert "E1 is a passage of" in results[-1].payload["content"]["notices"][0]


async def test_prompts_name_a_source_by_a_short_id_that_a_tool_accepts(
    shared_platform: Platform, tmp_path: Path
) -> None:
    going_on = {"analysis": "More.", "stop": False}
    read_on = answers(planner=PLAN | {"tool": "read_source", "args": {"source": "S1"}})
    replies = (*answers(verifier=going_on)[:4], read_on[1], *read_on[3:])
    (tmp_path / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(shared_platform.database, shared_platform.tenant, tmp_path)
    async with WireServer(scripted(*replies)) as server:
        request = RunRequest("Who built the third tower?", budget=Budget(max_turns=3), engines=through(server))
        ended = await shared_platform.ended((await shared_platform.submit(request)).id)
    searched, read = await list_tool_results(shared_platform, ended)
    source = searched.payload["content"]["passages"][0]["source"]
    assert (read.payload["status"], read.payload["content"]["source"]) == ("ok", source)
    prompts = json.dumps(server.bodies)
    assert "Passage E1 (source S1, " in prompts
    assert source not in prompts
