"""Graphs within a graph that keep no checkpoint: compiled with `checkpointer=False`, as those of trustcall are.

With the durability `sync` LangGraph waits after each superstep for the checkpoint of that superstep, and such a graph
writes none: without this it ends in an AttributeError, as on LangGraph alone.
"""

from collections.abc import Generator

from langgraph.pregel._loop import PregelLoop

ATTRIBUTE = "_put_checkpoint_fut"


class _Written:
    """What there is to wait for where no checkpoint is under way: nothing."""

    def __await__(self) -> Generator[None]:
        yield from ()

    def result(self) -> None:
        """As of a future of a thread."""


def let_graphs_keep_none() -> None:
    """Give LangGraph's loops something to wait for before their first checkpoint. Once a process is enough."""
    if not hasattr(PregelLoop, ATTRIBUTE):
        setattr(PregelLoop, ATTRIBUTE, _Written())
