"""Tests again and again on a busy machine: how often they failed, which ones, and what they said.

`make repeat T="tests/workers/test_every_transaction.py -k away" TIMES=50 BUSY=3`. Prints a line a repetition, then the
runs, the failures and the names of failed tests; the logs of failed repetitions are kept. Ends with 1 when one failed.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)

BUSY_LOOP = "while True: pass"


@contextmanager
def busy(loops: int, nice: int) -> Generator[None]:
    """So many processes that use a core each, while the block runs. `nice`: how far they yield to others."""

    def give_way() -> None:
        os.nice(nice)

    started = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP], preexec_fn=give_way) for _ in range(loops)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def once(arguments: Sequence[str], log: Path, limit: float) -> list[str] | None:
    """The names of the tests that failed. Empty: pytest itself failed. None: all passed, and the log is gone."""
    command = [sys.executable, "-m", "pytest", "-q", "-ra", *arguments]
    with log.open("wb") as out:
        try:
            ended = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, timeout=limit, check=False).returncode
        except subprocess.TimeoutExpired:
            out.write(f"\nrepeat: not over after {limit:g} s\n".encode())
            return []
    if ended == 0:
        log.unlink()
        return None
    return FAILED.findall(log.read_text(errors="replace"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10, help="repetitions")
    parser.add_argument("--busy", type=int, default=0, help="busy loops beside them")
    parser.add_argument("--nice", type=int, default=0, help="how far the busy loops yield, 0 to 19")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for one repetition")
    parser.add_argument("--logs", type=Path, default=Path(".repeat"), help="folder for the logs of failures")
    chosen, arguments = parser.parse_known_args()
    chosen.logs.mkdir(parents=True, exist_ok=True)
    failures, names = 0, collections.Counter[str]()
    with busy(chosen.busy, chosen.nice):
        for nth in range(1, chosen.times + 1):
            began, log = time.monotonic(), chosen.logs / f"{time.strftime('%Y%m%d-%H%M%S')}-{nth}.log"
            result = once(arguments, log, chosen.limit)
            failures += result is not None
            names.update(result or [])
            text = "passed" if result is None else f"FAILED, see {log}: {', '.join(result) or 'pytest itself'}"
            print(f"{nth}/{chosen.times}  {time.monotonic() - began:.0f} s  {text}", flush=True)
    print(f"runs {chosen.times}, failures {failures}, busy loops {chosen.busy}")
    for name, count in names.most_common():
        print(f"{count:>4}  {name}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
