"""Where a call stands: the same after a crash, within subgraphs, and whichever of two calls side by side is first."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from langchain_core.runnables.config import var_child_runnable_config

from offing.core.step import CallKey
from offing.kernel.call_key import CallKeys
from offing.kernel.call_path import CallPathTracker, UntrackedSubgraphError


def node(step: int, path: str, namespace: str) -> dict[str, Any]:
    """What LangGraph says of the node that runs."""
    return {
        "langgraph_step": step,
        "langgraph_path": ("__pregel_pull", path),
        "langgraph_checkpoint_ns": namespace,
    }


@contextmanager
def inside(metadata: dict[str, Any]) -> Generator[None]:
    token = var_child_runnable_config.set({"metadata": metadata})
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


async def get_position(task: str, *, numbered: str = "") -> tuple[int, str]:
    """Of a node `work` in a subgraph of the node `inner`, whose task has this id."""
    paths, outer = CallPathTracker(), f"inner:{task}"
    await paths.on_chain_start({}, {}, metadata=node(7, "inner", outer))
    with inside(node(2, "work", f"{outer}{numbered}|work:{task}9")):
        return paths.current_path()


async def test_a_position_in_a_subgraph_has_the_callers_superstep_and_no_id() -> None:
    assert await get_position("aaa") == await get_position("bbb") == (7, "__pregel_pull/inner>2:__pregel_pull/work")


async def test_two_subgraphs_that_one_node_called_are_told_apart() -> None:
    assert await get_position("aaa", numbered="|1") == (7, "__pregel_pull/inner>1:>2:__pregel_pull/work")


async def test_a_subgraph_whose_caller_was_not_seen_has_no_position() -> None:
    with (
        inside(node(2, "work", "inner:aaa|work:bbb")),
        pytest.raises(UntrackedSubgraphError, match="Pass the config of the node"),
    ):
        CallPathTracker().current_path()


def keys(*request: str, by_content: bool) -> dict[str, CallKey]:
    created = CallKeys(CallPathTracker(), by_content=by_content)
    with inside(node(3, "tools", "tools:aaa")):
        return {one: created.next_call("search", {"query": one, "limit": 8}).key for one in request}


@pytest.mark.parametrize("by_content", [True, False])
def test_calls_side_by_side_have_the_same_keys_whichever_is_first(by_content: bool) -> None:
    assert keys("one", "two", by_content=by_content) == keys("two", "one", by_content=by_content)


def test_seeds_and_idempotency_keys_are_what_they_were_before_keys_had_digests() -> None:
    """What is stored was drawn from them, and tools outside know them."""
    paths, run = CallPathTracker(), UUID(int=7)
    native, plain = CallKeys(paths, by_content=False), CallKeys(paths, by_content=True)
    with inside(node(3, "tools", "tools:aaa")):
        first, second = native.next_call("one", {}), native.next_call("two", {})
        equal, again = plain.next_call("one", {}), plain.next_call("one", {})
    path, digest = "__pregel_pull/tools", equal.key.digest
    assert [first.seed_text, second.seed_text] == [f"3/{path}/0", f"3/{path}/1"]
    assert second.idempotency_key(run) == f"{run}:3:{path}:1"
    assert [equal.seed_text, again.seed_text] == [f"3/{path}#{digest}/0", f"3/{path}#{digest}/1"]
    assert again.idempotency_key(run) == f"{run}:3:{path}#{digest}:1"


def test_the_order_of_a_mappings_keys_is_no_part_of_what_is_asked() -> None:
    created = CallKeys(CallPathTracker(), by_content=True)
    with inside(node(3, "tools", "tools:aaa")):
        one, other = (created.next_call("add", args).key for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert (one.path, one.digest, [one.ordinal, other.ordinal]) == (other.path, other.digest, [0, 1])
