"""Disk space of the history of a conversation compared with LangGraph: one message per superstep, all of them kept."""

from typing import Any, LiteralString

import psycopg
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from offing.langchain import register_langgraph
from offing.local.servers import ServerUrls
from offing.services.runs import RunRequest
from tests.bench.bare import Bare, bare_saver
from tests.bench.graphs import noise
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import Client

LENGTHS = (125, 250, 500)
"""Messages per run."""

OURS: LiteralString = "app.checkpoint, app.checkpoint_value, app.checkpoint_write"

BARE: LiteralString = "public.checkpoints, public.checkpoint_blobs, public.checkpoint_writes"

STORED: LiteralString = """
    select coalesce(sum(pg_total_relation_size(trim(name)::regclass)), 0)::bigint
      from unnest(string_to_array(%s, ',')) as name
"""


async def _reply(state: MessagesState) -> dict[str, Any]:
    count = len(state["messages"])
    return {"messages": [AIMessage(noise(count), id=f"m{count}")]}


async def _more(state: MessagesState) -> str:
    expected = int(state["messages"][0].text)
    return END if len(state["messages"]) >= expected else "say"


def conversation() -> Any:
    """A loop that adds a message of 2 kB in each superstep. Its first message has the number."""
    builder: Any = StateGraph(MessagesState)
    builder.add_node("say", _reply)
    builder.add_edge(START, "say")
    builder.add_conditional_edges("say", _more, ["say", END])
    return builder


conversing = register_langgraph("bench_plain_conversing", conversation, code_path=__file__)


def stored_bytes(url: str, tables: LiteralString) -> int:
    """Return the bytes of these tables with their indexes, without free space."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(b"vacuum full " + tables.encode())
        row = connection.execute(STORED, (tables,)).fetchone()
    assert row is not None
    return row[0]


async def _ours(client: Client, servers: ServerUrls, messages: int) -> float:
    before = stored_bytes(servers.owner_url, OURS)
    run = await client.submit(RunRequest(str(messages), conversing.name))
    await client.ended(run.id, every=0.2)
    return (stored_bytes(servers.owner_url, OURS) - before) / 1e6


async def _bare(servers: ServerUrls, messages: int) -> float:
    async with bare_saver(servers.owner_url, lock=False) as saver:
        before = stored_bytes(servers.owner_url, BARE)
        await Bare(conversation().compile(checkpointer=saver)).run({"messages": [("user", str(messages))]})
    return (stored_bytes(servers.owner_url, BARE) - before) / 1e6


async def history_bytes(client: Client, servers: ServerUrls) -> list[Measurement]:
    """Return the bytes of all checkpoints of a run, and the growth factor when the number of messages doubles."""
    ours = {messages: await _ours(client, servers, messages) for messages in LENGTHS}
    bare = {messages: await _bare(servers, messages) for messages in LENGTHS}
    measurements = [
        Measurement(f"checkpoints of {messages} messages of 2 kB, one per superstep", (ours[messages],), "MB",
               (bare[messages],))
        for messages in LENGTHS
    ]  # fmt: skip
    aim = Aim("at most 2.2, as with linear growth", at_most=2.2, of_ratio=True)
    growth = (ours[500] / ours[250],)
    what = "the same, 500 messages; bare: 250 messages in Offing"
    return [*measurements, Measurement(what, (ours[500],), "MB", (ours[250],), ratios=growth, aim=aim)]
