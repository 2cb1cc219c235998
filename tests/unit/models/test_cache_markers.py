"""Which part of a prompt is marked for providers that cache only what is marked."""

from typing import Any

import pytest

from offing.core.model import EngineConfig, Message
from offing.models.credentials import EngineEndpoint
from offing.models.litellm_request import LitellmOptions, LitellmRequest, build_arguments

PROMPT = (Message("system", ("You verify.", "Be strict.")), Message("user", ("Is it enough?",)))


def sent_messages(model: str, prompt: tuple[Message, ...] = PROMPT) -> list[dict[str, Any]]:
    config = EngineConfig(engine="litellm", model=model)
    request = LitellmRequest(config, LitellmOptions(), EngineEndpoint("", ""), "text", {}, prompt, 0)
    return build_arguments(request)["messages"]


def test_the_constant_system_part_is_marked_for_anthropic() -> None:
    system, user = sent_messages("anthropic/claude-sonnet-4-5")
    (block,) = system["content"]
    assert block == {"type": "text", "text": "You verify.\n\nBe strict.", "cache_control": {"type": "ephemeral"}}
    assert user == {"role": "user", "content": "Is it enough?"}


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/no-such-model", "ollama_chat/qwen3"])
def test_nothing_is_marked_for_other_providers_and_unknown_models(model: str) -> None:
    assert [message["content"] for message in sent_messages(model)] == ["You verify.\n\nBe strict.", "Is it enough?"]


def test_a_prompt_without_a_system_part_is_unchanged() -> None:
    (message,) = sent_messages("anthropic/claude-sonnet-4-5", PROMPT[1:])
    assert message["content"] == "Is it enough?"
