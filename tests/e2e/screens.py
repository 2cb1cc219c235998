"""Starts a stack, fills it with sample runs, and opens every screen of the web UI in a browser.

python -m tests.e2e.screens [OPTIONS]   options are those of frontend/e2e/screens.mjs
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e import sample_runs

FRONTEND = Path(__file__).parents[2] / "frontend"

HOUR = 3600
"""Seconds that a walk over all screens may take on a busy machine."""


def walk(home: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Open the screens over a stack of its own in the data directory `home`, which is stopped afterwards."""
    environment = os.environ | {
        "OFFING_HOME": str(home),
        "OFFING_PORT": "0",
        "OFFING_WORKER_PROCESSES": "1",
        "OFFING_GRAPH_PATHS": str(sample_runs.FAILING_GRAPH),
    }

    def offing(*words: str) -> str:
        command = [sys.executable, "-m", "offing.cli", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    try:
        offing("up", "--detach")
        base = json.loads((home / "up.json").read_text())["page_url"]
        ids = sample_runs.fill(base, _link(offing("login")))
        ids["job"] = asyncio.run(sample_runs.add_training_job(home))
        known = {"OFFING_URL": base, "OFFING_LOGIN": _link(offing("login")), "OFFING_IDS": json.dumps(ids)}
        command = ["node", "e2e/screens.mjs", *options]
        return subprocess.run(
            command, cwd=FRONTEND, env=environment | known, capture_output=True, text=True, timeout=HOUR, check=False
        )
    finally:
        subprocess.run([sys.executable, "-m", "offing.cli", "down"], env=environment, capture_output=True, check=False)


def _link(output: str) -> str:
    return next(word for word in output.split() if "/login?token=" in word)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="offing-screens-") as folder:
        done = walk(Path(folder), *sys.argv[1:])
    print(done.stdout, done.stderr, sep="", end="")
    sys.exit(done.returncode)
