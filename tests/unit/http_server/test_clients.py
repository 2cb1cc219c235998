"""Which connections are let in, and which one makes room."""

import logging
from dataclasses import dataclass

import pytest

from offing.http_server.clients import ClientLimits, ClientRegistry


@dataclass(eq=False)
class Client:
    """A connection of an address. `idle`: its request has no complete head."""

    address: str = "10.0.0.1"
    idle: bool = True
    closed: bool = False

    def close_idle(self) -> bool:
        self.closed = self.closed or self.idle
        return self.closed


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def begun(clients: ClientRegistry, count: int, address: str = "10.0.0.1", *, idle: bool = True) -> list[Client]:
    created = [Client(address, idle) for _ in range(count)]
    for client in created:
        assert clients.admit(client)
        assert clients.request_started(client)
    return created


def test_many_that_come_at_once_are_all_let_in() -> None:
    clients = ClientRegistry(ClientLimits(max_connections=100, max_half_open=5), Clock())
    assert not any(client.closed for client in begun(clients, 50))


def test_the_oldest_unfinished_request_of_an_address_makes_room_for_the_next() -> None:
    clock = Clock()
    clients = ClientRegistry(ClientLimits(max_connections=100, max_half_open=5), clock)
    first, others = begun(clients, 5), begun(clients, 5, "10.0.0.2")
    clock.now += 2
    begun(clients, 1)
    assert [client.closed for client in first] == [True, False, False, False, False]
    assert not any(client.closed for client in others)


def test_uploads_are_not_closed_for_others() -> None:
    clock = Clock()
    clients = ClientRegistry(ClientLimits(max_connections=100, max_half_open=5), clock)
    uploads = begun(clients, 5, idle=False)
    clock.now += 2
    assert clients.admit(late := Client())
    assert not clients.request_started(late)
    clients.request_ended(uploads[0])
    assert clients.request_started(late)


def test_a_full_server_closes_who_asks_for_nothing_and_else_rejects() -> None:
    clock = Clock()
    clients = ClientRegistry(ClientLimits(max_connections=10, max_half_open=50), clock)
    waiting, _ = begun(clients, 1), begun(clients, 9, idle=False)
    assert not clients.admit(Client())
    clock.now += 2
    assert clients.admit(Client("10.0.0.2"))
    assert waiting[0].closed
    clients.remove(waiting[0])
    assert not clients.admit(Client("10.0.0.3"))


def test_a_flood_is_one_line_per_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    clients = ClientRegistry(ClientLimits(), clock)
    with caplog.at_level(logging.WARNING, "offing.http"):
        for _ in range(1000):
            clients.log_action("closed: late", "10.0.0.1")
        clock.now += 61
        clients.log_action("closed: late", "10.0.0.1")
    assert [record.getMessage() for record in caplog.records] == [
        "connection of 10.0.0.1 closed: late",
        "connection of 10.0.0.1 closed: late, and 999 more since the last such line",
    ]
