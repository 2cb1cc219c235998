"""Error message for a server that answers with a redirect."""

import httpx

from offing.core.step import shorten_line
from offing.telemetry.redaction import redact


def render_redirect_error(response: httpx.Response) -> str:
    """Return a message that names both servers, without paths or credentials, and the solution."""
    request_url = response.request.url
    return (
        f"{_server_of(request_url)} answers with a redirect "
        f"({response.status_code}){_redirect_target(request_url, response)}. It is not followed,"
        " because it would receive the key. Use the final address."
    )


def _redirect_target(request_url: httpx.URL, response: httpx.Response) -> str:
    """Return the target of a redirect. Empty if there is no usable target."""
    try:
        return f" to {redact(shorten_line(_server_of(request_url.join(response.headers.get('location', ''))), 200))}"
    except httpx.InvalidURL:
        return ""


def _server_of(url: httpx.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
