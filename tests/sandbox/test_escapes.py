"""Every way out that we know, through every driver that this machine has: none leads anywhere, and nothing stays."""

import asyncio
import os

import psutil
import pytest

from offing.sandbox.escape_probe import EscapeProbe, ProbeTargets
from offing.sandbox.resource_usage import list_descendants
from offing.sandbox.sandbox import ExecutionResult, KillReason, Sandbox
from tests.sandbox.escapes import ALL
from tests.sandbox.leftovers import wait_until_ended


async def run_watched(
    sandbox: Sandbox, probe: EscapeProbe, targets: ProbeTargets
) -> tuple[ExecutionResult, set[psutil.Process]]:
    """What came of it, and every process that was seen below ours meanwhile."""
    seen = set[psutil.Process]()
    before = set(list_descendants(os.getpid()))
    running = asyncio.create_task(sandbox.run(probe.build_request(targets)))
    while not (await asyncio.wait({running}, timeout=0.02))[0]:
        for pid in set(list_descendants(os.getpid())) - before:
            try:
                seen.add(psutil.Process(pid))
            except psutil.NoSuchProcess:
                continue
    return running.result(), seen


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name.replace(" ", "-"))
async def test_a_way_out_is_contained_and_nothing_of_it_stays(
    sandbox: Sandbox, probe: EscapeProbe, targets: ProbeTargets
) -> None:
    secret = targets.secret.read_text("ascii")
    ran, seen = await run_watched(sandbox, probe, targets)
    assert probe.find_problem(ran) == ""
    assert secret not in ran.stdout + ran.stderr
    assert not any(secret.encode() in file.data for file in ran.files)
    assert seen
    await wait_until_ended(seen)
    assert targets.secret.read_text("ascii") == secret


def test_there_are_at_least_forty_ways_out_with_names_of_their_own() -> None:
    assert len({probe.name for probe in ALL}) == len(ALL) >= 40


def test_a_probe_that_got_out_or_was_never_tried_is_noticed() -> None:
    probe = EscapeProbe("it", "", accepted_kills=(KillReason.MEMORY,))
    assert probe.find_problem(ExecutionResult(0, "tried\nreached\n", "")) == "it was reached"
    assert probe.find_problem(ExecutionResult(1, "", "NameError")) == "it was not tried: NameError"
    assert (
        probe.find_problem(ExecutionResult(None, "tried\n", "", kill_reason=KillReason.TIME))
        == "it was not tried: time"
    )
    assert probe.find_problem(ExecutionResult(None, "", "", kill_reason=KillReason.MEMORY)) == ""
    assert probe.find_problem(ExecutionResult(0, "tried\n", "")) == ""
