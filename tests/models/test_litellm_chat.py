"""A chat with tools at a provider: its own tools and roles are sent, and the record has the same in words."""

from typing import Any

from offing.core.model import EngineResponse
from offing.langchain.chat_values import ChatMessage, ChatPrompt, ChatReply, ChatTool, ChatToolCall
from offing.langchain.role import create_chat_role
from tests.model_provider import Completion, WireServer, scripted
from tests.models.builders import answered, choice, litellm_engine, request

ADD = ChatTool(name="add", description="Add.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
PROMPT = (ChatMessage(role="system", text="Be brief."), ChatMessage(role="user", text="1 + 2?"))
CALLED = ChatMessage(role="assistant", calls=(ChatToolCall(name="add", args={"a": 1}),), call_ids=("c1",), seq=4)
TOOL_RESULT = ChatMessage(role="tool", text="3", answers="c1", tool="add")


async def complete_chat(
    *replies: Completion, messages: tuple[ChatMessage, ...] = PROMPT, **more: Any
) -> tuple[EngineResponse, list[Any]]:
    inputs = ChatPrompt(messages=messages, tools=(ADD,), **more)
    async with WireServer(scripted(*replies)) as server:
        answer = await answered(
            litellm_engine(), request(choice(server.url), role=create_chat_role("agent"), inputs=inputs)
        )
        return answer, list(server.bodies)


async def test_tools_and_their_results_are_sent_as_the_provider_knows_them() -> None:
    answer, (sent,) = await complete_chat(Completion("It is 3."), messages=(*PROMPT, CALLED, TOOL_RESULT))
    assert [m["role"] for m in sent["messages"]] == ["system", "user", "assistant", "tool"]
    assert sent["messages"][2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert sent["messages"][3]["tool_call_id"] == "c1"
    assert sent["tools"][0]["function"]["name"] == "add"
    assert not {"tool_choice", "response_format"} & sent.keys()
    assert answer.output == ChatReply(text="It is 3.")


async def test_a_call_is_read_and_recorded_in_words() -> None:
    answer, _ = await complete_chat(Completion(tool="add", arguments='{"a": 1}'))
    assert answer.output == ChatReply(calls=(ChatToolCall(name="add", args={"a": 1}),))
    assert answer.text == '<tool_call>\n{"arguments": {"a": 1}, "name": "add"}\n</tool_call>'
    assert "# Tools" in answer.messages[0].text
    assert answer.sampling["output_mode"] == "native"


async def test_several_calls_at_once_are_all_taken() -> None:
    answer, _ = await complete_chat(Completion(tool="add", arguments='{"a": 1}', calls=2))
    assert answer.output == ChatReply(calls=(ChatToolCall(name="add", args={"a": 1}),) * 2)


async def test_arguments_that_are_no_json_are_asked_for_again() -> None:
    answer, (_, again) = await complete_chat(
        Completion(tool="add", arguments="{a: 1"), Completion(tool="add", arguments='{"a": 1}')
    )
    assert answer.output == ChatReply(calls=(ChatToolCall(name="add", args={"a": 1}),))
    assert "JSON" in again["messages"][-1]["content"]
    assert [m["role"] for m in again["messages"]] == ["system", "user", "user"]


async def test_a_tool_that_must_be_called_is_named_to_the_provider() -> None:
    _, (sent,) = await complete_chat(Completion(tool="add", arguments="{}"), must_call="add")
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    _, (sent,) = await complete_chat(Completion(tool="add", arguments="{}"), must_call="any")
    assert sent["tool_choice"] == "required"
