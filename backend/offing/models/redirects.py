"""What is said of a server that answers with a redirect instead of an answer; the only home of that sentence."""

import httpx

from offing.core.step import shortened
from offing.telemetry.redaction import redact


def redirect_message(response: httpx.Response) -> str:
    """Names both servers, without paths or credentials, and what to do."""
    asked = response.request.url
    return (
        f"{_place(asked)} answers with a redirect ({response.status_code}){_to(asked, response)}. It is not followed,"
        " because the key would go along. Name the address that answers itself."
    )


def _to(asked: httpx.URL, response: httpx.Response) -> str:
    """Where to. Empty: nowhere that could be asked."""
    try:
        return f" to {redact(shortened(_place(asked.join(response.headers.get('location', ''))), 200))}"
    except httpx.InvalidURL:
        return ""


def _place(url: httpx.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
