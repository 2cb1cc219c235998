"""Result of a check of the installation, which `offing doctor` and the web UI show."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check. `remedy` is `None` if there is nothing to do."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
