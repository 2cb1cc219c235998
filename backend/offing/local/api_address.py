"""Address of the API and the web UI: the port, the local URL, and whether it is ready."""

import http.client
import socket

from offing.core.errors import Conflict
from offing.settings import Settings


def loopback_address(host: str) -> str:
    """Return the address by which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)


def get_web_url(settings: Settings) -> str:
    """Return the URL of the web UI for a browser on this machine."""
    host = loopback_address(settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def choose_port(host: str, port: int) -> int:
    """Return `port`, or a free port for 0. Raises Conflict that names OFFING_PORT if the port is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Conflict(
                f"Port {port} on {host} cannot be used: {error.strerror}.",
                f"Set OFFING_PORT to another port, such as {port + 1}, or stop the program that uses it.",
            ) from error
        return int(probe.getsockname()[1])


def is_healthy(settings: Settings) -> bool:
    """Return whether the API reports over loopback that it is ready."""
    connection = http.client.HTTPConnection(loopback_address(settings.host), settings.port, timeout=5)
    try:
        connection.request("GET", "/api/v1/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False  # not listening yet; the caller tries again
    finally:
        connection.close()
