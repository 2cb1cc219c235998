"""The functional form: tasks that are started together, and an entrypoint that puts their results together."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
from typing import Any

from langgraph.func import entrypoint, task

from offing.langchain import OffingChatModel, register_langgraph

model = OffingChatModel("agent")


@task
async def describe(what: str) -> str:
    return str((await model.ainvoke(f"Describe {what}.")).text)


@entrypoint()
async def workflow(topic: str) -> dict[str, Any]:
    parts = await asyncio.gather(*(describe(f"{topic} {side}") for side in ("outside", "inside")))
    answer = await model.ainvoke("Join: " + " / ".join(parts))
    return {"answer": str(answer.text)}


graph = register_langgraph(
    "plain_functional",
    workflow,
    code_path=__file__,
    initial_state=lambda run: run.question,  # type: ignore[arg-type, return-value]
    answer=lambda values: str(values.get("answer", "")),
)
