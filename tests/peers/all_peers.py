"""All peers, and what of each kind of test is expected to fail as yet."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.peers import deep, extraction, memories, memory_agent, middleware, reflection, research, supervisor, swarm
from tests.peers.peer_case import Peer

PEERS: tuple[Peer, ...] = (
    supervisor.peer,
    swarm.peer,
    research.peer,
    middleware.peer,
    deep.peer,
    memories.peer,
    memory_agent.peer,
    extraction.peer,
    reflection.peer,
)


def each(
    kind: str, among: Callable[[Peer], Any] = lambda _: True, of: tuple[Peer, ...] = PEERS
) -> pytest.MarkDecorator:
    """A test of that kind for each peer that it is about."""
    return pytest.mark.parametrize("peer", [_expected(peer, kind) for peer in of if among(peer)])


def _expected(peer: Peer, kind: str) -> Any:
    why = peer.fails.get(kind)
    marks = [pytest.mark.xfail(strict=True, reason=why)] if why else []
    return pytest.param(peer, id=peer.name, marks=marks)
