"""What a worker does with a run of LangGraph's clients."""

from typing import Any

import pytest

from offing.clock import new_id
from offing.core.langgraph_run import LANGGRAPH
from offing.core.run import FencingToken
from offing_workers.langgraph_run import send_load_langgraph_run


class _Row:
    """A run as far as it matters here."""

    def __init__(self, protocol: str | None) -> None:
        self.id, self.protocol = new_id(), protocol


async def test_a_run_of_langgraphs_api_is_not_executed_as_an_ordinary_one() -> None:
    nothing: Any = None
    row: Any = _Row(LANGGRAPH)
    fence = FencingToken(new_id(), row.id, 1)
    with pytest.raises(RuntimeError, match="has no streams"):
        await send_load_langgraph_run(nothing, fence, row, None)
    other: Any = _Row(None)
    assert await send_load_langgraph_run(nothing, fence, other, None) is None
