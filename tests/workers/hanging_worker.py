"""A worker that does not get closed: `python -m tests.workers.hanging_worker`. Its limit for that is two seconds."""

import asyncio

from offing_workers import app
from offing_workers.process import WorkerProcess


async def hang(_: WorkerProcess) -> None:
    await asyncio.sleep(3600)


if __name__ == "__main__":
    setattr(WorkerProcess, "_close", hang)  # noqa: B010
    app.EXIT_TIMEOUT_SECONDS = 2.0
    app.main()
