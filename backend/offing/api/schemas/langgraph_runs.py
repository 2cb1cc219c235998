"""API schemas of runs that LangGraph's clients made."""

from typing import Any
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel
from offing.api.schemas.input_requests import ResponseFormOut, serialize_form
from offing.services.langgraph_run_views import LangGraphRunView, WaitingInterrupt


class InterruptOut(ApiModel):
    """An interrupt at which the run ended. A response starts another run of the thread."""

    id: str
    prompt: str
    detail: str = Field(description="The value of the interrupt, to be shown unchanged. Empty: it is the prompt.")
    response_form: ResponseFormOut | None = Field(description="Required shape of the response. null: any text.")


class LangGraphRunOut(ApiModel):
    """What a run of LangGraph's clients began with, and what it left. Values come from the client and the graph."""

    assistant_id: UUID
    metadata: dict[str, Any]
    tags: list[str] = Field(description="The tags of the request's `config`.")
    input: Any = Field(description="The input of the graph. null: none.")
    command: dict[str, Any] | None = Field(description="`resume`, `update` and `goto`. null: none.")
    values: Any = Field(description="The values of its last state. null: it wrote none, or they are deleted.")
    next_nodes: list[str] = Field(description="The nodes that come next. Empty: the graph has ended.")
    interrupts: list[InterruptOut] = Field(description="What waits for a response. Empty also if a later run followed.")


def serialize_langgraph_run(view: LangGraphRunView) -> LangGraphRunOut:
    arguments = view.row.arguments
    return LangGraphRunOut(
        assistant_id=view.row.assistant_id,
        metadata=view.row.metadata,
        tags=list(arguments.config.get("tags") or ()),
        input=arguments.input,
        command=None if arguments.command is None else dict(arguments.command),
        values=view.values,
        next_nodes=list(view.next_nodes),
        interrupts=[_serialize_interrupt(one) for one in view.interrupts],
    )


def _serialize_interrupt(interrupt: WaitingInterrupt) -> InterruptOut:
    form = interrupt.prompt.response_form
    return InterruptOut(
        id=interrupt.id,
        prompt=interrupt.prompt.prompt,
        detail=interrupt.prompt.detail,
        response_form=None if form is None else serialize_form(form),
    )


LANGGRAPH_RUN_EXAMPLE: dict[str, Any] = {
    "assistant_id": "01980000-0000-7000-8000-000000000031",
    "metadata": {"customer": "ada"},
    "tags": ["letters"],
    "input": {"topic": "send the letter"},
    "command": None,
    "values": {"topic": "send the letter", "decisions": []},
    "next_nodes": ["ask"],
    "interrupts": [{"id": "5b3f", "prompt": "May I send the letter?", "detail": "", "response_form": None}],
}
