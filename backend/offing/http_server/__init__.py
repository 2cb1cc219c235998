"""Serving HTTP to clients that may be hostile: strict requests, time limits and a limited number of connections."""

from offing.http_server.clients import ClientLimits, Clients
from offing.http_server.protocol import protocol_for

__all__ = ["ClientLimits", "Clients", "protocol_for"]
