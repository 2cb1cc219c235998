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


def get_langgraph_url(settings: Settings) -> str | None:
    """Return the URL of LangGraph's API at the root of its own port. `None` means that it has none."""
    if settings.langgraph_port is None:
        return None
    return get_web_url(settings.model_copy(update={"port": settings.langgraph_port}))


def choose_ports(settings: Settings) -> Settings:
    """Return the settings with the ports to use: a free one for 0. Raises Conflict for a port that is in use."""
    changes = {"port": choose_port(settings.host, settings.port)}
    if settings.langgraph_port is not None:
        changes["langgraph_port"] = choose_port(settings.host, settings.langgraph_port, "OFFING_LANGGRAPH_PORT")
    return settings.model_copy(update=changes)


def prefer_port(host: str, port: int) -> int:
    """Return `port`, or 0 for a free one if it is in use."""
    try:
        return choose_port(host, port)
    except Conflict:
        return 0


def choose_port(host: str, port: int, setting: str = "OFFING_PORT") -> int:
    """Return `port`, or a free port for 0. Raises Conflict that names the setting if the port is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Conflict(
                f"Port {port} on {host} cannot be used: {error.strerror}.",
                f"Set {setting} to another port, such as {port + 1}, or stop the program that uses it.",
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
