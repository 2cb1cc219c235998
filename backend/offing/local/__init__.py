"""Postgres, Valkey and our own processes on this machine: started, watched and stopped together.

It knows binaries, sockets, signals and folders. It does not know tables, tenants or runs: migrations and login links
come in as callables.
"""

from offing.local.servers import Servers, local_servers

__all__ = ["Servers", "local_servers"]
