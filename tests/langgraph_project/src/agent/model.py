"""The agent's own chat model. It needs no key: it answers with the text of a file."""

# pyright: basic

import os
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

PHRASES = Path(__file__).parent / "phrases.md"


class PhraseModel(BaseChatModel):
    """Answers with a phrase. Each call adds a line to the file that AGENT_CALLS names, so that calls can be counted."""

    @property
    def _llm_type(self) -> str:
        return "phrases"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        *more: Any,
        **kwargs: Any,
    ) -> ChatResult:
        if counter := os.environ.get("AGENT_CALLS"):
            with Path(counter).open("a") as file:
                file.write("called\n")
        text = f"{PHRASES.read_text().strip()} {messages[-1].text}"
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        message = AIMessage(text, usage_metadata=usage, response_metadata={"model_name": "phrases-1"})
        return ChatResult(generations=[ChatGeneration(message=message)])
