"""Bare LangGraph behind a minimal HTTP server, which answers stateless runs as LangGraph's clients expect.

    .venv/bin/python -m tests.bench.bare_server PORT DATABASE_URL [--lock]

It has no queue, no workers, no record and no keys: the graph runs in the task of the request, with LangGraph's Postgres
checkpointer, and a thread of its own.
"""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from offing.garbage_collection import configure_garbage_collection
from tests.bench.bare import bare_saver
from tests.bench.counting import build_counting


def build_app(graph: Any) -> Starlette:
    """Return an application that runs a compiled graph."""

    async def stream(request: Request) -> Response:
        body = orjson.loads(await request.body())
        return StreamingResponse(_stream_run(graph, body), media_type="text/event-stream")

    async def wait(request: Request) -> Response:
        body = orjson.loads(await request.body())
        result = await graph.ainvoke(body["input"], _new_thread(), durability="async")
        return Response(orjson.dumps(result), media_type="application/json")

    async def ok(_: Request) -> Response:
        return Response(b'{"ok":true}', media_type="application/json")

    return Starlette(
        routes=[
            Route("/runs/stream", stream, methods=["POST"]),
            Route("/runs/wait", wait, methods=["POST"]),
            Route("/ok", ok),
        ]
    )


async def _stream_run(graph: Any, body: dict[str, Any]) -> AsyncGenerator[bytes]:
    yield _encode_event("metadata", {"run_id": str(uuid4()), "attempt": 1})
    modes = body.get("stream_mode") or "values"
    modes = [modes] if isinstance(modes, str) else modes
    chunks = graph.astream(body["input"], _new_thread(), stream_mode=modes, durability="async")
    async for mode, chunk in chunks:
        yield _encode_event(mode, chunk)


def _new_thread() -> dict[str, Any]:
    return {"configurable": {"thread_id": str(uuid4())}}


def _encode_event(name: str, data: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"


async def serve(port: int, database_url: str, *, lock: bool) -> None:
    async with bare_saver(database_url, lock=lock) as saver:
        app = build_app(build_counting().compile(checkpointer=saver))
        configure_garbage_collection()
        config = uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, access_log=False)
        await uvicorn.Server(config).serve()


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("port", type=int)
    reader.add_argument("database_url")
    reader.add_argument("--lock", action="store_true", help="keep the lock of the checkpointer")
    words = reader.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(words.port, words.database_url, lock=words.lock))


if __name__ == "__main__":
    main()
