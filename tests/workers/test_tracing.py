"""A run leaves one trace, from the request that submitted it to its tool calls, without content."""

import re

from offing.core.run import Budget
from offing.services.runs import RunRequest
from tests.workers.conftest import Platform, StartWorker

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_slice_node_role_and_tool_belong_to_the_request(platform: Platform, start_worker: StartWorker) -> None:
    worker = start_worker(OTEL_TRACES_EXPORTER="console", OTEL_BSP_SCHEDULE_DELAY="100")
    request = RunRequest("a secret question", graph="counting", budget=Budget(max_turns=1), traceparent=PARENT)
    run = await platform.submit(request)
    await platform.ended(run.id)
    assert worker.finish() == 0
    written = worker.log.read_text()
    spans = dict(re.findall(r'"name": "((?:slice|node|role|tool) \w+)".*?"trace_id": "0x(\w+)"', written, re.S))
    assert {"slice counting", "node speak", "node act", "role speaker", "tool calculate"} <= set(spans)
    assert set(spans.values()) == {"0af7651916cd43dd8448eb211c80319c"}
    assert "a secret question" not in written
