"""The certificates that HTTP clients of this process check servers with."""

import ssl
from functools import cache

import httpx


@cache
def load_ssl_context() -> ssl.SSLContext:
    """Return the context that httpx would build for each client. Reading the certificates takes 20 ms, so it is built
    once in a process."""
    return httpx.create_ssl_context()
