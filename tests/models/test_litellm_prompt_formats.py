"""Models without tool calling, asked in a role's own form: nothing of a schema is said, the role's parser decides."""

from dataclasses import replace

from offing.core.model import FailureKind, InvalidOutput, Message
from offing.core.tokens import CompletionSpan, SpanKind
from offing.sdk.prompt_format import PromptFormat
from tests.model_provider import Completion, WireServer, scripted
from tests.models.builders import VERIFIER, Question, Verdict, answered, choice, failed, litellm_engine, request


def _read(text: str, _: Question) -> Verdict | InvalidOutput:
    word, space, rest = text.removesuffix("</done>").partition(" ")
    return Verdict(analysis=rest, stop=word == "stop") if space else InvalidOutput("Write stop or go, then why.")


def _spans(text: str) -> tuple[CompletionSpan, ...]:
    return (CompletionSpan(SpanKind.SWITCH, 0, text.index(" ")),)


PLAIN = PromptFormat(
    "plain", lambda inputs: (Message("user", (f"plain {inputs.text}",)),), _read, _spans, stop=("</done>",)
)
SPEAKING = replace(VERIFIER, prompt_formats=(PLAIN,))


async def test_the_form_is_the_whole_prompt_and_its_parser_reads_the_answer() -> None:
    async with WireServer(scripted(Completion("stop enough</done> and then I looked again"))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, prompt_format="plain"), role=SPEAKING))
    (sent,) = server.bodies
    assert sent["messages"] == [{"role": "user", "content": "plain Is the evidence enough?"}]
    assert not {"response_format", "tools", "tool_choice"} & sent.keys()
    assert (answer.output, answer.text) == (Verdict(analysis="enough", stop=True), "stop enough</done>")
    assert (answer.spans, answer.sampling["prompt_format"]) == ((CompletionSpan(SpanKind.SWITCH, 0, 4),), "plain")
    assert answer.trace is None


async def test_what_the_parser_cannot_read_is_asked_for_again_in_its_words() -> None:
    async with WireServer(scripted(Completion("hm"), Completion("go on then"))) as server:
        answer = await answered(litellm_engine(), request(choice(server.url, prompt_format="plain"), role=SPEAKING))
    assert "Write stop or go" in server.bodies[1]["messages"][-1]["content"]
    assert [a.text for a in answer.attempts] == ["hm"]


async def test_a_form_that_the_role_lacks_is_rejected_by_name() -> None:
    async with WireServer(scripted()) as server:
        failure = await failed(litellm_engine(), request(choice(server.url, prompt_format="odd"), role=SPEAKING))
    assert (failure.kind, server.requests) == (FailureKind.BAD_REQUEST, [])
    assert "Its prompt formats: plain" in failure.message


async def test_without_a_chosen_form_a_model_is_asked_by_the_schema_as_ever() -> None:
    async with WireServer(scripted(Completion('{"analysis": "x", "stop": false}'))) as server:
        await answered(litellm_engine(), request(choice(server.url), role=SPEAKING))
    assert "response_format" in server.bodies[0]
