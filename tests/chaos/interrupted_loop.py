"""`offing loop` with a killer inside: `python -m tests.chaos.interrupted_loop CONFIG`.

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
from offing.cli.terminal import ProgressPrinter
from offing.local.data_directory import locate_data_directory
from offing.local.engine_process import get_policy_dir
from offing.local.servers import get_server_urls
from offing.settings import load_settings
from tests.chaos.loop_trial import flip

PHASE_BY_MESSAGE: Mapping[str, str] = {
    "engine": "engine serve",
    "worker": "offing_workers",
    "postgres": "postgres",
    "valkey": "valkey",
}
"""What a victim's command line has in it."""

LAUNCHER = "/launch.py"
"""Becomes the program, and is not it yet."""

UNDER_WAY = "select count(*) from app.run where kind = 'rollout' and status = 'running'"

phase_counts = Counter[str]()

strikes: list[dict[str, Any]] = json.loads(os.environ["CHAOS_STRIKES"])


def count_phase(phase: str) -> None:
    """Kill the processes that are due in this phase."""
    phase_counts[phase] += 1
    for one in strikes:
        if (one["phase"], one.get("times", 1)) != (phase, phase_counts[phase]):
            continue
        if one.get("amid"):
            threading.Thread(target=_amid, args=(phase, one["victim"]), daemon=True).start()
        else:
            _strike(phase, one["victim"])


def _amid(phase: str, victim: str) -> None:
    url = get_server_urls(settings := load_settings(), locate_data_directory(settings.home)).owner_url
    with psycopg.connect(url, autocommit=True) as owner:
        while not (owner.execute(UNDER_WAY).fetchone() or (0,))[0]:
            time.sleep(0.005)
    _strike(phase, victim)


def _strike(phase: str, victim: str) -> None:
    with open(os.environ["CHAOS_STRUCK"], "a", encoding="utf-8") as struck:
        struck.write(f"{phase}: {victim}\n")
    if "/" in victim:
        return flip(get_policy_dir(load_settings()) / victim)
    os.kill(os.getpid() if victim == "loop" else _pid(PHASE_BY_MESSAGE[victim]), signal.SIGKILL)


def _pid(rendered: str) -> int:
    """Of the program as it runs now; one that is being started again is waited for."""
    while True:
        for child in psutil.Process().children():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                line = child.cmdline()
                if rendered in " ".join(line) and not any(part.endswith(LAUNCHER) for part in line):
                    return child.pid
        time.sleep(0.01)


def hearing() -> None:
    """Have the loop's words heard before they are shown."""
    teller, say = loop._progress_printer, ProgressPrinter.show_status  # pyright: ignore[reportPrivateUsage]

    def telling(progress: ProgressPrinter) -> Callable[..., None]:
        show = teller(progress)

        def report_progress(job: Any, phase: str, metrics: Mapping[str, float]) -> None:
            count_phase(f"{job.kind} {phase}")
            show(job, phase, metrics)

        return report_progress

    def saying(self: ProgressPrinter, text: str) -> None:
        say(self, text)
        count_phase(text.split(",")[0] if text.startswith("evaluating") else text)

    setattr(loop, "_progress_printer", telling)  # noqa: B010
    setattr(ProgressPrinter, "show_status", saying)  # noqa: B010


if __name__ == "__main__":
    hearing()
    sys.argv[1:1] = ["loop"]
    main()
