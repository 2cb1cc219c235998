"""Worker processes that have graphs of all packages in hand, and are killed: each run ends as it would have."""

import asyncio
import random
from uuid import UUID

import pytest

from offing.core.run import RunStatus
from offing.services.graphs import open_registry
from offing.services.runs import submit_run
from tests.model_provider.replies import Completion, Reply, Slow
from tests.model_provider.server import Received, WireServer
from tests.peers.all_peers import PEERS
from tests.peers.peer_case import Peer, provider
from tests.peers.peer_runs import model_calls, request_of
from tests.workers.conftest import Platform, StartWorker, platform, start_worker
from tests.workers.langgraph_runs import answer_of

__all__ = ["platform", "start_worker"]

ABLE = tuple(peer for peer in PEERS if not peer.replies and not {"runs", "survives"} & set(peer.fails))
"""Those that nobody is asked in, and that come to their end at all."""

GRAPHS = ",".join(peer.place for peer in ABLE)

QUICK = {
    "OFFING_EXTRA_GRAPHS": GRAPHS,
    "OFFING_LEASE_SECONDS": "1",
    "OFFING_HEARTBEAT_INTERVAL_SECONDS": "0.25",
    "OFFING_SWEEP_INTERVAL_SECONDS": "0.4",
}

SLOW = 0.08
"""Seconds of a model's answer, so that a kill falls into one."""


def slowly(peers: tuple[Peer, ...]) -> WireServer:
    answered = provider({peer.name: peer for peer in peers})

    def respond(request: Received) -> Reply:
        reply = answered(request)
        return Slow(reply, SLOW) if isinstance(reply, Completion) else reply

    return WireServer(respond)


@pytest.mark.timeout(180)
async def test_runs_of_all_packages_survive_the_crash_of_their_worker(
    platform: Platform, start_worker: StartWorker
) -> None:
    async with slowly(ABLE) as server:
        begun = [(peer, await begin(platform, peer, server.url)) for peer in ABLE]
        calls = random.randrange(3, 14)
        await killed_after(platform, [run for _, run in begun], calls, start_worker)
        start_worker(**QUICK)
        for peer, run in begun:
            ended = await platform.ended(run)
            seen = f"{peer.name}, killed after {calls} calls: {ended.error}"
            assert ended.status is RunStatus.DONE, seen
            assert await answer_of(platform, run) == peer.answer, seen


async def begin(platform: Platform, peer: Peer, url: str) -> UUID:
    request = request_of(peer, url, peer.question)
    created = await submit_run(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(GRAPHS)
    )
    return created.run.id


async def killed_after(platform: Platform, runs: list[UUID], calls: int, start: StartWorker) -> None:
    """A worker claims the runs and is killed when this number of their model calls is on record."""
    worker = start(**QUICK)
    async with asyncio.timeout(60):
        while sum([len(model_calls(await platform.steps(run))) for run in runs]) < calls:
            assert not all([(await platform.run(run)).is_terminal for run in runs])
            await asyncio.sleep(0.01)
    worker.kill()
