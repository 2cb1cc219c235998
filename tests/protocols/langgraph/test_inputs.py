"""What a page that is reloaded in the middle of a run reads: the state of the thread, with the run's input."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]


async def until_shown(client: Client, thread: str, messages: int) -> Any:
    """The state of a thread once it has `messages` messages."""
    while True:
        state = await client.threads.get_state(thread)
        values: dict[str, Any] = state["values"] or {}
        if len(values.get("messages", ())) >= messages:
            return state
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_the_input_of_a_run_is_in_the_state_while_its_first_node_runs(
    client: Client, tmp_path: Path, durability: str
) -> None:
    thread = (await client.threads.create())["thread_id"]
    for turn in (0, 1):
        gate = tmp_path / f"gate{turn}"
        graph_input = {"messages": [{"role": "user", "content": f"question {turn}"}], "gate": str(gate)}
        run = await client.runs.create(thread, "gated", input=graph_input, durability=durability)
        state = await until_shown(client, thread, 2 * turn + 1)
        assert [one["content"] for one in state["values"]["messages"]][-1] == f"question {turn}"
        assert (state["next"], state["metadata"]["run_id"]) == (["write"], run["run_id"])
        assert (await client.threads.get(thread))["values"] == state["values"]
        gate.touch()
        await client.runs.join(thread, run["run_id"])
        steps = [one["metadata"]["step"] for one in await client.threads.get_history(thread, limit=3)]
        assert steps == sorted(steps, reverse=True)
    assert len(await client.threads.get_history(thread, limit=100)) == 6
