# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""A bounded walk over every operation with generated requests: nothing breaks, and answers are as documented."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Any

import orjson
import schemathesis
import schemathesis.checks
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from offing.api.app import create_app
from offing.api.process import Server, build_server_config
from offing.bus.notifier import BusNotifier
from offing.services import access
from offing.services.runs import RunRequest, submit_run
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.api.graphs import quiet
from tests.api.simulated_worker import SimulatedWorker

EXAMPLES = 10
"""Of each of some forty operations."""

CHECKS = [
    schemathesis.checks.not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@contextmanager
def in_a_thread(settings: Settings) -> Generator[tuple[str, dict[str, object]]]:
    app = create_app(settings)
    config = build_server_config(app, settings)
    server = Server(config, app, None)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", orjson.loads(orjson.dumps(app.openapi()))
    finally:
        server.should_exit = True
        thread.join(20)


async def _furnished(app_url: str, redis_url: str) -> tuple[str, dict[str, str]]:
    """A key, and the ids of records that are there: a run that has ended with a report, its thread, and a source."""
    async with Database(app_url, max_connections=2) as database, BusNotifier(redis_url) as notifier:
        hands = SimulatedWorker(database, LOCAL_TENANT, notifier.live)
        source = await hands.document()
        request = RunRequest("Why is the sea salt?", graph=quiet.name)
        created = await submit_run(database, notifier, LOCAL_TENANT, request, graphs={quiet.name: quiet})
        fence = await hands.claim(created.run.id)
        await hands.report(fence, source)
        await hands.end(fence)
        key = (await access.create_key(database, LOCAL_TENANT, "fuzz")).key
        known = {"run_id": created.run.id, "thread_id": created.run.thread_id, "source_id": source}
        return key, {name: str(id) for name, id in known.items()}


def test_generated_requests_break_nothing(settings: Settings, app_url: str, redis_url: str) -> None:
    key, known = asyncio.run(_furnished(app_url, redis_url))
    headers = {"Authorization": f"Bearer {key}"}
    turns = count()
    with in_a_thread(settings) as (base, document):
        schema = schemathesis.openapi.from_dict(document)
        for result in schema.get_all_operations():
            operation = result.ok()  # pyright: ignore[reportAttributeAccessIssue]

            @given(case=operation.as_strategy())
            @_bounded
            def attempt(case: schemathesis.Case[Any]) -> None:
                if next(turns) % 2 and operation.method != "delete":  # noqa: B023
                    case.path_parameters |= {n: id for n, id in known.items() if n in case.path_parameters}
                response = case.call(base_url=base, headers=headers, timeout=20)
                case.validate_response(response, checks=CHECKS)

            attempt()


_bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
