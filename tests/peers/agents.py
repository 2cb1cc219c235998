"""Agents of langchain's with what its pages show next: other models, limits, hooks, tools that write state, context."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingTypeStubs=false

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    ContextEditingMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRequest,
    ModelResponse,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from langchain.tools import InjectedStore, ToolRuntime, tool
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command

from offing.langchain import OffingChatModel, register_langgraph
from offing.sdk import Graph
from tests.model_provider.replies import Fault, Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says

model, second = OffingChatModel("agent"), OffingChatModel("second")


def registered(name: str, agent: Any, *models: str, **more: Any) -> Graph:
    return register_langgraph(name, agent, code_path=__file__, models=models or ("agent",), **more)


def agent(name: str, lines: Any, answer: str, question: str = "Begin.", **more: Any) -> Peer:
    return Peer(name, question, lines, answer, module="agents", **more)


failed: list[int] = []
"""Attempts of the tool that fails at first."""


@tool
def look(what: str) -> str:
    """Look at something."""
    return f"{what} is green"


@tool
def shaky(what: str) -> str:
    """Look at something with a shaky hand."""
    failed.append(1)
    if len(failed) < 2:
        raise ConnectionError("not yet")
    return f"{what} is green"


def once(received: ReceivedPrompt) -> Reply:
    """One look, and what it gave."""
    return says(f"I see {received.last}.") if received.answered else calls("look", what="grass")


def always(received: ReceivedPrompt) -> Reply:
    return calls("look", what="grass")


# Models ---------------------------------------------------------------------------------------------------------------

fallback = registered(
    "fallback", create_agent(model, [], middleware=[ModelFallbackMiddleware(second)]), "agent", "second"
)


def second_only(received: ReceivedPrompt) -> Reply:
    return says("I am the second.") if received.role == "second" else Fault(400, "not today")


@wrap_model_call
async def choose(
    request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
) -> Any:
    return await handler(request.override(model=second) if len(request.messages) > 1 else request)


routed = registered("routed", create_agent(model, [look], middleware=[choose]), "agent", "second")


def routed_lines(received: ReceivedPrompt) -> Reply:
    return says(f"Second: {received.last}.") if received.role == "second" else calls("look", what="grass")


def from_a_name() -> Any:
    return create_agent("openai:gpt-5", [look])


by_name = registered("by_name", from_a_name, models_by_name={"openai:gpt-5": "agent"})

selecting: Any = LLMToolSelectorMiddleware(model=model, max_tools=1)
selected = registered("selected", create_agent(model, [look, shaky], middleware=[selecting]))


def selected_lines(received: ReceivedPrompt) -> Reply:
    return (
        calls("ToolSelectionResponse", tools=["look"]) if "ToolSelectionResponse" in received.tools else once(received)
    )


# Limits and retries ---------------------------------------------------------------------------------------------------

limiting: list[Any] = [ModelCallLimitMiddleware(run_limit=3, exit_behavior="end")]
call_limited = registered("call_limited", create_agent(model, [look], middleware=limiting))

tool_limiting: list[Any] = [ToolCallLimitMiddleware(run_limit=1, exit_behavior="end")]
tool_limited = registered("tool_limited", create_agent(model, [look], middleware=tool_limiting))

retrying: list[Any] = [ToolRetryMiddleware(max_retries=2, initial_delay=0.01), ModelRetryMiddleware(max_retries=1)]
shaken = registered("shaken", create_agent(model, [shaky], middleware=retrying))


def shaken_lines(received: ReceivedPrompt) -> Reply:
    return says(f"I see {received.last}.") if received.answered else calls("shaky", what="grass")


editing: list[Any] = [ContextEditingMiddleware(token_count_method="model")]
edited = registered("edited", create_agent(model, [look], middleware=editing))

summing: Any = SummarizationMiddleware(model, trigger=("messages", 3), keep=("messages", 1))
summed = registered("summed", create_agent(model, [look], middleware=[summing]))


def summed_lines(received: ReceivedPrompt) -> Reply:
    if not received.tools:
        return says("Grass was looked at.")
    return says("All is green.") if "Grass was looked at." in received.everything else calls("look", what="grass")


# Hooks, state and context ---------------------------------------------------------------------------------------------


@before_model(can_jump_to=["end"])
def no_more(state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
    return {"jump_to": "end", "messages": [AIMessage("Enough.")]} if len(state["messages"]) > 2 else None


jumping = registered("jumping", create_agent(model, [look], middleware=[no_more]))


@wrap_tool_call
async def louder(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
    message = await handler(request)
    return (
        message.model_copy(update={"content": f"{message.content}!"}) if isinstance(message, ToolMessage) else message
    )


wrapped = registered("wrapped", create_agent(model, [look], middleware=[louder]))


class Noted(AgentState[Any]):
    notes: str


@tool
def note(text: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
    """Note something."""
    runtime.stream_writer({"noted": text})
    message = ToolMessage(f"noted after {runtime.state['notes']}", tool_call_id=runtime.tool_call_id or "")
    return Command(update={"notes": text, "messages": [message]})


def start_noted(run: Any) -> dict[str, Any]:
    return {"messages": [("user", run.question)], "notes": "nothing"}


noted = registered(
    "noted",
    create_agent(model, [note], state_schema=Noted),
    initial_state=start_noted,
    answer=lambda values: f"{values['messages'][-1].text} {values['notes']}",
)


def noted_lines(received: ReceivedPrompt) -> Reply:
    return says(received.last) if received.answered else calls("note", text="tea")


@dataclass(frozen=True)
class Manner:
    """How to speak."""

    style: str


@dynamic_prompt
def in_style(request: ModelRequest[Manner]) -> str:
    return f"Speak {request.runtime.context.style}."  # pyright: ignore[reportOptionalMemberAccess]


mannered = registered(
    "mannered",
    create_agent(model, [], middleware=[in_style], context_schema=Manner),
    context=lambda run: Manner("plainly"),
)


@tool
async def keep(text: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
    """Keep something."""
    await store.aput(("kept",), "one", {"text": text})
    item = await store.aget(("kept",), "one")
    return item.value["text"] if item else "nothing"


keeping = registered("keeping", create_agent(model, [keep]))


def kept_lines(received: ReceivedPrompt) -> Reply:
    return says(received.last) if received.answered else calls("keep", text="tea")


AGENTS = (
    agent("fallback", second_only, "I am the second.", roles=("agent", "second")),
    agent("routed", routed_lines, "Second: grass is green.", roles=("agent", "second")),
    agent("by_name", once, "I see grass is green."),
    agent("selected", selected_lines, "I see grass is green."),
    agent("call_limited", always, "Model call limits exceeded: run limit (3/3)"),
    agent("tool_limited", always, "Tool call limit reached: run limit exceeded (2/1 calls)."),
    agent("shaken", shaken_lines, "I see grass is green."),
    agent("edited", once, "I see grass is green."),
    agent("summed", summed_lines, "All is green."),
    agent("jumping", always, "Enough."),
    agent("wrapped", once, "I see grass is green!."),
    agent("noted", noted_lines, "noted after nothing tea"),
    agent("mannered", lambda heard: says(heard.system_text), "Speak plainly."),
    agent("keeping", kept_lines, "tea"),
)
