"""The web UI in Chromium: opening a long run, scrolling it, catching up, and the lists with 10,000 runs.

The servers, the API and the built web UI are those of `offing up`, without a worker. The script in frontend/e2e
measures. This module writes the runs, and appends to them when the script asks for it.
"""

import json
import os
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from offing.cli.hooks import build_hooks
from offing.local.api_address import choose_port, get_web_url
from offing.local.data_directory import prepare_data_directory
from offing.local.servers import ServerUrls
from offing.local.stack import build_api_process
from offing.local.supervisor import Supervisor, discard_message
from offing.settings import Settings
from tests.bench.measurement import Aim, Measurement
from tests.bench.servers import open_migrated_servers
from tests.bench.web_ui_data import LONG_STEPS, RUNNING_STEPS, add_run, add_steps, add_stored_runs

ROOT = Path(__file__).parents[2]

SCRIPT = ROOT / "frontend" / "e2e" / "page-speed.mjs"

CHROMIUM = os.environ.get("OFFING_CHROMIUM", "/usr/bin/chromium")

ROUNDS = 5

STORED_RUNS = 10_000

MISSED_STEPS = 5_000

LONG_RUN = uuid5(NAMESPACE_OID, "long run")

RUNNING_RUNS = tuple(uuid5(NAMESPACE_OID, f"running run {number}") for number in range(ROUNDS))
"""One for each time that a page misses steps."""

Samples = Mapping[str, Sequence[float]]
"""One value per round, by the name that the script gives them. Times are in milliseconds."""


def web_ui_speed() -> list[Measurement]:
    """Measure the web UI. Raises CalledProcessError, with the script's error printed, if a page does not work."""
    with open_migrated_servers() as (servers, home), serve_web_ui(servers, home) as (base, link):
        add_stored_runs(servers.owner_url, STORED_RUNS)
        add_run(servers.owner_url, LONG_RUN, LONG_STEPS, ended=True)
        for run_id in RUNNING_RUNS:
            add_run(servers.owner_url, run_id, RUNNING_STEPS, ended=False)
        return _measurements(_measure(servers, base, link))


@contextmanager
def serve_web_ui(servers: ServerUrls, home: Path) -> Generator[tuple[str, str]]:
    """Run the API with the web UI. Yields its address and a login link."""
    host = "127.0.0.1"
    settings = Settings(home=home, host=host, port=choose_port(host, 0))
    supervisor = Supervisor(discard_message)
    try:
        supervisor.start([build_api_process(settings, prepare_data_directory(home), servers, None)])
        base = get_web_url(settings)
        yield base, build_hooks().create_login_link(servers, base)
    finally:
        supervisor.stop()


def _measure(servers: ServerUrls, base: str, link: str) -> Samples:
    """Run the script, which prints a line of JSON for each run that shall miss steps, and at the end its samples."""
    environment = os.environ | {
        "OFFING_URL": base,
        "OFFING_LOGIN": link,
        "OFFING_CHROMIUM": CHROMIUM,
        "OFFING_LONG_RUN": str(LONG_RUN),
        "OFFING_LONG_STEPS": str(LONG_STEPS),
        "OFFING_RUNNING_RUNS": json.dumps([str(run_id) for run_id in RUNNING_RUNS]),
        "OFFING_RUNNING_STEPS": str(RUNNING_STEPS),
        "OFFING_MISSED_STEPS": str(MISSED_STEPS),
        "OFFING_ROUNDS": str(ROUNDS),
    }
    command = ["node", str(SCRIPT)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdin is not None
        assert script.stdout is not None
        for line in script.stdout:
            message: dict[str, Any] = json.loads(line)
            if "samples" in message:
                return message["samples"]
            add_steps(servers.owner_url, UUID(message["append"]), RUNNING_STEPS + 1, RUNNING_STEPS + MISSED_STEPS)
            print("appended", file=script.stdin, flush=True)
    raise subprocess.CalledProcessError(script.returncode, command)


def _seconds(samples: Samples, name: str) -> tuple[float, ...]:
    return tuple(value / 1000 for value in samples[name])


def _measurements(samples: Samples) -> list[Measurement]:
    run = f"a stored run of 2,048 turns ({LONG_STEPS:,} steps)"
    under_second = Aim("under 1 s", at_most=1)
    under_half = Aim("under 0.5 s", at_most=0.5)
    lists = f"{STORED_RUNS:,} stored runs"

    def times(what: str, name: str, aim: Aim) -> Measurement:
        return Measurement(what, _seconds(samples, name), "ms", aim=aim)

    return [
        times(f"{run}: until a step of its timeline answers a click, nothing cached", "open_cold", under_second),
        times("the same run, code cached", "open_warm", under_second),
        Measurement(
            "DOM nodes of this page, maximum while scrolling",
            tuple(samples["nodes"]),
            "count",
            aim=Aim("under 3,000", at_most=2_999),
        ),
        Measurement(
            "frame while scrolling this timeline, p95",
            _seconds(samples, "frame_timeline"),
            "ms",
            bare=_seconds(samples, "frame_list"),
            bare_what="plain list of as many rows",
            aim=Aim("under 20 ms", at_most=0.02),
        ),
        Measurement(
            "work of the main thread per frame of it, p95",
            _seconds(samples, "work_timeline"),
            "ms",
            bare=_seconds(samples, "work_list"),
            bare_what="plain list of as many rows",
        ),
        times(
            f"{MISSED_STEPS:,} missed steps: from the new connection until the last one is shown and all have arrived",
            "catch_up",
            under_second,
        ),
        times(f"home page with {lists}: until the first runs, nothing cached", "home_cold", under_half),
        times(f"home page with {lists}, code cached", "home_warm", under_half),
        times(f"list of runs with {lists}: until the first runs, nothing cached", "runs_cold", under_half),
        times(f"list of runs with {lists}, code cached", "runs_warm", under_half),
    ]
