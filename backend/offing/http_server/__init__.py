"""HTTP server for untrusted clients: strict parsing, time limits and a limited number of connections."""

from offing.http_server.clients import ClientLimits, ClientRegistry
from offing.http_server.protocol import build_protocol

__all__ = ["ClientLimits", "ClientRegistry", "build_protocol"]
