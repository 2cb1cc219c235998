"""Support for subgraphs without checkpoints, compiled with `checkpointer=False`, as in trustcall.

With the durability `sync`, LangGraph waits after each superstep for its checkpoint. A subgraph
without checkpoints then ends in an AttributeError, also with LangGraph alone. This module prevents
that.
"""

from collections.abc import Generator

from langgraph.pregel._loop import PregelLoop

FUTURE_ATTRIBUTE = "_put_checkpoint_fut"


class _CompletedFuture:
    """A future that is already done, for loops without a checkpoint in progress."""

    def __await__(self) -> Generator[None]:
        yield from ()

    def result(self) -> None:
        """Return immediately, like a completed future of a thread."""


def allow_uncheckpointed_graphs() -> None:
    """Give LangGraph's loops a completed future before their first checkpoint. Call it once per process."""
    if not hasattr(PregelLoop, FUTURE_ATTRIBUTE):
        setattr(PregelLoop, FUTURE_ATTRIBUTE, _CompletedFuture())
