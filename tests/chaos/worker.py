"""A worker whose calls are witnessed: `python -m tests.chaos.worker` is `python -m offing_workers`, plus a witness.

Before an engine answers, a line goes to the file that CHAOS_CALLS names: the run's seed, the role, the turn and our
pid. That file is what was really asked for, and so paid, whatever the database says. CHAOS_SLOW_MS makes the engines
without a model as slow as one, so that a run of them has a middle to strike at; the option `slow_ms` of a role's engine
says otherwise for it. CHAOS_DEAF makes the worker ignore what its
heartbeat learns, so that nothing but the fence keeps it from writing to runs that it has lost.
"""

import asyncio
import os
from typing import Any

from offing.models.engine import RoleRequest
from offing.models.extractive import ExtractiveEngine
from offing.models.rules import RulesEngine
from offing.models.scripted import ScriptedEngine
from offing_workers import app
from offing_workers.process import WorkerProcess


def witness(engine: type[Any], slow_ms: int = 0) -> None:
    """Have every call of an engine written down before it is answered."""
    answer = engine.answer

    async def witnessed(self: Any, request: RoleRequest) -> Any:
        _write(f"{request.seed} {request.role.name} {request.turn} {os.getpid()}\n")
        await asyncio.sleep(request.engine_config.options.get("slow_ms", slow_ms) / 1000)
        return await answer(self, request)

    engine.answer = witnessed


def _ignore(*_: object) -> None:
    pass


def _write(line: str) -> None:
    # A short line is appended in one write, so it is whole although other processes write and some are killed.
    fd = os.open(os.environ["CHAOS_CALLS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, line.encode())
    os.close(fd)


if __name__ == "__main__":
    witness(ScriptedEngine)
    for engine in (ExtractiveEngine, RulesEngine):
        witness(engine, int(os.environ.get("CHAOS_SLOW_MS", "0")))
    if os.environ.get("CHAOS_DEAF"):
        setattr(WorkerProcess, "_apply_control", _ignore)  # noqa: B010
    app.main()
