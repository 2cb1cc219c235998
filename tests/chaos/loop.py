"""`offing loop` with a killer inside: `python -m tests.chaos.loop CONFIG`.

CHAOS_STRIKES, a JSON list, says who is killed when: `{"phase": ..., "times": n, "victim": ...}` strikes when that phase
is said for the nth time in this process. Phases are what jobs say, with their kind in front (`train forward`, `loop
forward`), and what the loop itself says. A victim is a program of the stack, or the loop; or it is a file of a version,
such as `planner@5/config.json`, of which a byte is flipped. With `"amid": true` it strikes once a rollout is under way
after that. CHAOS_STRUCK names the file that gets a line for each strike.
"""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import psutil
import psycopg

from offing.cli import loop
from offing.cli.main import main
from offing.cli.terminal import Progress
from offing.local.datadir import layout
from offing.local.policy import policies_folder
from offing.local.servers import addresses
from offing.settings import load_settings
from tests.chaos.loop_home import flip

SHOWN_BY: Mapping[str, str] = {
    "engine": "engine serve",
    "worker": "offing_workers",
    "postgres": "postgres",
    "valkey": "valkey",
}
"""What a victim's command line has in it."""

LAUNCHER = "/launch.py"
"""Becomes the program, and is not it yet."""

UNDER_WAY = "select count(*) from app.run where kind = 'rollout' and status = 'running'"

heard = Counter[str]()

strikes: list[dict[str, Any]] = json.loads(os.environ["CHAOS_STRIKES"])


def hear(phase: str) -> None:
    """Strike whoever is to be struck in this phase."""
    heard[phase] += 1
    for one in strikes:
        if (one["phase"], one.get("times", 1)) != (phase, heard[phase]):
            continue
        if one.get("amid"):
            threading.Thread(target=_amid, args=(phase, one["victim"]), daemon=True).start()
        else:
            _strike(phase, one["victim"])


def _amid(phase: str, victim: str) -> None:
    url = addresses(settings := load_settings(), layout(settings.home)).owner_url
    with psycopg.connect(url, autocommit=True) as owner:
        while not (owner.execute(UNDER_WAY).fetchone() or (0,))[0]:
            time.sleep(0.005)
    _strike(phase, victim)


def _strike(phase: str, victim: str) -> None:
    with open(os.environ["CHAOS_STRUCK"], "a", encoding="utf-8") as struck:
        struck.write(f"{phase}: {victim}\n")
    if "/" in victim:
        return flip(policies_folder(load_settings()) / victim)
    os.kill(os.getpid() if victim == "loop" else _pid(SHOWN_BY[victim]), signal.SIGKILL)


def _pid(shown: str) -> int:
    """Of the program as it runs now; one that is being started again is waited for."""
    while True:
        for child in psutil.Process().children():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                line = child.cmdline()
                if shown in " ".join(line) and not any(part.endswith(LAUNCHER) for part in line):
                    return child.pid
        time.sleep(0.01)


def hearing() -> None:
    """Have the loop's words heard before they are shown."""
    teller, say = loop._teller, Progress.say  # pyright: ignore[reportPrivateUsage]

    def telling(progress: Progress) -> Callable[..., None]:
        show = teller(progress)

        def told(job: Any, phase: str, figures: Mapping[str, float]) -> None:
            hear(f"{job.kind} {phase}")
            show(job, phase, figures)

        return told

    def saying(self: Progress, text: str) -> None:
        say(self, text)
        hear(text.split(",")[0] if text.startswith("evaluating") else text)

    setattr(loop, "_teller", telling)  # noqa: B010
    setattr(Progress, "say", saying)  # noqa: B010


if __name__ == "__main__":
    hearing()
    sys.argv[1:1] = ["loop"]
    main()
