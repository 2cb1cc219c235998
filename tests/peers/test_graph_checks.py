"""The check finds no error in graphs of other packages on a swapped model, and finds one that was left as it was."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from importlib import import_module
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langgraph_swarm import create_swarm

from offing.langchain import OffingChatModel, register_langgraph
from offing.testing.graph_checks import ERROR, find_graph_issues
from tests.peers.all_peers import PEERS
from tests.peers.peer_case import Peer


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
async def test_a_graph_on_our_model_has_no_error(peer: Peer) -> None:
    graph = import_module(f"tests.peers.{peer.name}").graph
    assert [str(result) for result in await find_graph_issues(graph) if result.level == ERROR] == []


async def test_one_agent_of_several_that_kept_its_model_is_found_by_its_path() -> None:
    ours, theirs = OffingChatModel("agent"), GenericFakeChatModel(messages=iter([]))
    agents: list[Any] = [create_agent(ours, [], name="reader"), create_agent(theirs, [], name="writer")]
    graph = register_langgraph(
        "team", create_swarm(agents, default_active_agent="reader").compile(), code_path=__file__
    )
    results = [(one.rule, one.location) for one in await find_graph_issues(graph) if one.level == ERROR]
    assert results == [("foreign-model", "node 'writer > model'")]
