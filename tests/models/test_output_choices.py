"""Fields whose values are one of few: enumerations of the schema that a provider gets, and what is asked again."""

import json

from offing.core.model import InvalidOutput
from offing.models.output_choice import add_choices, check_choices
from offing.models.structured_output import to_strict_schema
from offing.sdk import OutputChoice
from offing_graphs.agentflow.roles import PLANNER, VERIFIER
from offing_graphs.agentflow.schemas import PlannerInput, Verdict, VerifierInput
from offing_graphs.hiper.schemas import Turn
from offing_graphs.memact.schemas import Act
from offing_graphs.shared.schemas import Analysis, Coverage, Plan, ToolCard
from tests.model_provider import Completion, WireServer, scripted
from tests.models.builders import answered, choice, litellm_engine, request

TOOLS = tuple(ToolCard(name=name, description="", parameters={}) for name in ("search_library", "read_source"))
ANALYSIS = Analysis(summary="s", sub_questions=("Who built the tower?", "When was it built?"))
INPUTS = PlannerInput(question="Who?", analysis=ANALYSIS, tools=TOOLS, turn=1, remaining=3)
PLAN = {"justification": "j", "context": "c", "sub_goal": "g", "tool": "search_library"}


async def test_a_provider_gets_the_tools_as_an_enumeration_in_the_schema() -> None:
    """The arguments of a plan are an open object, so the schema is not strict."""
    async with WireServer(scripted(Completion(json.dumps(PLAN)))) as server:
        await answered(litellm_engine(), request(choice(server.url), role=PLANNER, inputs=INPUTS))
    sent = server.bodies[0]["response_format"]["json_schema"]
    assert sent["strict"] is False
    assert sent["schema"]["properties"]["tool"]["enum"] == ["search_library", "read_source"]


async def test_an_unknown_tool_is_asked_for_again_with_the_list_of_tools() -> None:
    replies = (Completion(json.dumps(PLAN | {"tool": "google"})), Completion(json.dumps(PLAN)))
    async with WireServer(scripted(*replies)) as server:
        config = choice(server.url, model="openai/our-own-model")
        answer = await answered(litellm_engine(), request(config, role=PLANNER, inputs=INPUTS))
    words = server.bodies[1]["messages"][-1]["content"]
    assert 'tool: there is no "google". Use exactly one of: search_library, read_source.' in words
    assert len(answer.attempts) == 1


async def test_sub_questions_are_an_enumeration_and_other_words_are_accepted() -> None:
    inputs = VerifierInput(question="Who?", analysis=ANALYSIS, tools=TOOLS, turn=1, remaining=2)
    covered = [{"sub_question": "who built the tower", "covered": True}, {"sub_question": "Why?", "covered": False}]
    verdict = {"analysis": "a", "coverage": covered, "stop": False}
    async with WireServer(scripted(Completion(json.dumps(verdict)))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url), role=VERIFIER, inputs=inputs))
    coverage = server.bodies[0]["response_format"]["json_schema"]["schema"]["$defs"]["Coverage"]
    assert coverage["properties"]["sub_question"]["enum"] == list(ANALYSIS.sub_questions)
    assert isinstance(answer.output, Verdict)
    assert [one.sub_question for one in answer.output.coverage] == ["Who built the tower?", "Why?"]
    assert answer.sampling["repairs"] == ["choice"]


def test_a_tool_that_may_be_empty_stays_so_and_nested_fields_are_found() -> None:
    act = add_choices(Act.model_json_schema(), (OutputChoice("tool", ("search_library",)),))
    assert act["properties"]["tool"]["enum"] == ["search_library", ""]
    turn = add_choices(Turn.model_json_schema(), (OutputChoice("action.tool", ("answer",)),))
    assert turn["$defs"]["Action"]["properties"]["tool"]["enum"] == ["answer"]
    verdict = add_choices(Verdict.model_json_schema(), (OutputChoice("coverage.*.sub_question", ("a", "b")),))
    strict = to_strict_schema(verdict)
    assert strict is not None
    assert strict["$defs"]["Coverage"]["properties"]["sub_question"]["enum"] == ["a", "b"]


def test_a_value_between_two_others_is_not_chosen() -> None:
    tools = (OutputChoice("tool", ("read_source1", "read_source2")),)
    assert isinstance(check_choices(Plan.model_validate(PLAN | {"tool": "read_source"}), tools), InvalidOutput)
    assert Coverage(sub_question="a", covered=True)
