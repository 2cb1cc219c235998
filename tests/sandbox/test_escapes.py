"""Every way out that we know, through every driver that this machine has: none leads anywhere, and nothing stays."""

import asyncio
import os

import psutil
import pytest

from offing.sandbox.probe import Bait, Probe
from offing.sandbox.sandbox import Killed, Ran, Sandbox
from offing.sandbox.watching import descendants
from tests.sandbox.escapes import ALL
from tests.sandbox.leftovers import all_gone


async def run_watched(sandbox: Sandbox, probe: Probe, bait: Bait) -> tuple[Ran, set[psutil.Process]]:
    """What came of it, and every process that was seen below ours meanwhile."""
    seen = set[psutil.Process]()
    before = set(descendants(os.getpid()))
    running = asyncio.create_task(sandbox.run(probe.code(bait)))
    while not (await asyncio.wait({running}, timeout=0.02))[0]:
        for pid in set(descendants(os.getpid())) - before:
            try:
                seen.add(psutil.Process(pid))
            except psutil.NoSuchProcess:
                continue
    return running.result(), seen


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name.replace(" ", "-"))
async def test_a_way_out_is_contained_and_nothing_of_it_stays(sandbox: Sandbox, probe: Probe, bait: Bait) -> None:
    secret = bait.secret.read_text("ascii")
    ran, seen = await run_watched(sandbox, probe, bait)
    assert probe.problem(ran) == ""
    assert secret not in ran.stdout + ran.stderr
    assert not any(secret.encode() in file.data for file in ran.files)
    assert seen
    await all_gone(seen)
    assert bait.secret.read_text("ascii") == secret


def test_there_are_at_least_forty_ways_out_with_names_of_their_own() -> None:
    assert len({probe.name for probe in ALL}) == len(ALL) >= 40


def test_a_probe_that_got_out_or_was_never_tried_is_noticed() -> None:
    probe = Probe("it", "", stopped=(Killed.MEMORY,))
    assert probe.problem(Ran(0, "tried\nreached\n", "")) == "it was reached"
    assert probe.problem(Ran(1, "", "NameError")) == "it was not tried: NameError"
    assert probe.problem(Ran(None, "tried\n", "", killed=Killed.TIME)) == "it was not tried: time"
    assert probe.problem(Ran(None, "", "", killed=Killed.MEMORY)) == ""
    assert probe.problem(Ran(0, "tried\n", "")) == ""
