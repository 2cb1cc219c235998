"""Local processes of the stack: Postgres, Valkey and Offing's own programs.

They are started, watched and stopped together. The package handles programs, sockets, signals and
folders. It does not import tables, tenants or runs: migrations and login links are passed in as
callables.
"""

from offing.local.servers import ServerUrls, open_servers

__all__ = ["ServerUrls", "open_servers"]
