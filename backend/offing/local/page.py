"""Where the page is: its port, its address from this machine, and whether it answers."""

import http.client
import socket

from offing.core.errors import Conflict
from offing.settings import Settings


def loopback(host: str) -> str:
    """The address under which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)


def page_url(settings: Settings) -> str:
    """Where a browser on this machine opens the page."""
    host = loopback(settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def free_port(host: str, port: int) -> int:
    """`port`, or any free one for 0. Raises Conflict naming OFFING_PORT when another program has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Conflict(
                f"Port {port} on {host} cannot be used: {error.strerror}.",
                f"Set OFFING_PORT to another one, such as OFFING_PORT={port + 1}, or stop what uses it.",
            ) from error
        return int(probe.getsockname()[1])


def healthy(settings: Settings) -> bool:
    """Whether the API says over loopback that it is ready."""
    connection = http.client.HTTPConnection(loopback(settings.host), settings.port, timeout=5)
    try:
        connection.request("GET", "/api/v1/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False  # not listening yet; the caller asks again
    finally:
        connection.close()
