"""Which driver runs code here, if any: the first that stands its self-test. Never one that does not.

The only home of the order in which drivers are tried. Knows no run.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from offing.sandbox.drivers.bubblewrap import Bubblewrap
from offing.sandbox.drivers.wasi import Wasi
from offing.sandbox.sandbox import Sandbox
from offing.sandbox.self_test import problem

Wanted = Literal["auto", "bubblewrap", "wasi", "off"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and why not the others."""

    sandbox: Sandbox | None
    """None: no code may run here."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why, by name of driver; those that stand behind the chosen one were not tried."""

    @property
    def reason(self) -> str:
        """Why no code may run. Empty: it may."""
        if self.sandbox is not None:
            return ""
        if not self.refused:
            return "Running code is turned off here by OFFING_SANDBOX."
        told = "; ".join(f"{name}: {why}" for name, why in self.refused.items())
        return f"No sandbox works on this machine, so no code is run ({told})."


def drivers(wanted: Wanted, folder: Path, *, packages: Path | None, module: Path | None) -> Sequence[Sandbox]:
    """Those that may be used, in order. `folder`: where they keep what they compile."""
    known: dict[str, Sandbox] = {"bubblewrap": Bubblewrap(packages), "wasi": Wasi(folder, module)}
    return [driver for name, driver in known.items() if wanted in ("auto", name)]


async def choose(candidates: Sequence[Sandbox], test: Callable[[Sandbox], Awaitable[str]] = problem) -> Choice:
    """The first candidate that stands the test, which gives its problem, or nothing where there is none."""
    refused = dict[str, str]()
    for candidate in candidates:
        if not (why := await test(candidate)):
            return Choice(candidate, refused)
        refused[candidate.name] = why
    return Choice(None, refused)
