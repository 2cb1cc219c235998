"""How long a person waits for `offing --help`, `offing up --detach` and a warm `offing ask`.

`python -m tests.bench.start [CHECKOUT…]` measures each checkout in turn in every round, so that the load of the machine
is the same for all of them. Wall time is that of the command; CPU time is that of its own process, without the servers
and workers. Bytecode is cached, as it is after the first command.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]

QUESTION = "How does undici pool connections?"


@dataclass(frozen=True, slots=True)
class CommandTime:
    wall_seconds: float
    cpu_seconds: float


def time_command(checkout: Path, home: str, port: int, *words: str) -> CommandTime:
    """Run one command of a checkout. Raises CalledProcessError if it fails, except for a run without a report."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
        "OFFING_HOME": home,
        "OFFING_PORT": str(port),
        "PYTHONPATH": os.pathsep.join(str(checkout / part) for part in ("backend", "graphs", "workers")),
    }
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "offing.cli", *words],
        env=environment,
        cwd=checkout,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if ended.returncode > (words[0] == "ask"):
        raise subprocess.CalledProcessError(ended.returncode, words)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return CommandTime(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def time_round(checkout: Path, port: int) -> dict[str, CommandTime]:
    """Time each command once, with a data directory of its own that has been used before."""
    with tempfile.TemporaryDirectory() as home:
        time_command(checkout, home, port, "up", "--detach")
        time_command(checkout, home, port, "down")
        times = {"offing --help": time_command(checkout, home, port, "--help")}
        times["offing up --detach"] = time_command(checkout, home, port, "up", "--detach")
        try:
            time_command(checkout, home, port, "ask", QUESTION)
            times["offing ask, warm"] = time_command(checkout, home, port, "ask", QUESTION)
        finally:
            time_command(checkout, home, port, "down")
        return times


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--port", type=int, default=17890)
    options = parser.parse_args(arguments)
    checkouts, times = options.checkouts or [ROOT], defaultdict[tuple[str, Path], list[CommandTime]](list)
    for _ in range(options.rounds):
        for checkout in checkouts:
            for what, timed in time_round(checkout, options.port).items():
                times[what, checkout].append(timed)
    for (what, checkout), timed in sorted(times.items(), key=lambda item: item[0][0]):
        walls, cpus = [one.wall_seconds for one in timed], [one.cpu_seconds for one in timed]
        print(
            f"{what:20} {checkout}: wall {median(walls):.2f} s ({min(walls):.2f} to {max(walls):.2f}), "
            f"CPU {median(cpus):.2f} s ({min(cpus):.2f} to {max(cpus):.2f})"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
