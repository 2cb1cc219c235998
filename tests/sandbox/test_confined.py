"""What comes back from inside is read as a stranger's: whatever it says, it cannot say more than is allowed."""

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from offing.sandbox.confined import Command, confined
from offing.sandbox.sandbox import CannotRun, Code, Killed, Limits, Ran

SCRIPT = """
import json, os, sys
job = json.loads(sys.stdin.buffer.readline())
with open(job["result"], "wb") as sink:
    sink.write(bytes.fromhex(sys.argv[1]))
"""

LIMITS = Limits(seconds=30, file=100, files=2, total=150)

GOOD: dict[str, Any] = {"exit": 0, "killed": "", "files": [["a", 2], ["b/c", 1]], "left_out": ["d: it is a link"]}


async def told(outcome: bytes, limits: Limits = LIMITS) -> Ran:
    """What is made of an outcome that says this."""
    command = Command((sys.executable, "-I", "-c", SCRIPT, outcome.hex()), {}, "/", lambda _: None)
    return await confined(command, Code("pass", limits=limits))


def outcome(body: bytes = b"xyz", **changed: Any) -> bytes:
    return b"started\n" + json.dumps(GOOD | changed).encode() + b"\n" + body


async def test_a_run_that_is_cancelled_while_it_starts_leaves_no_descriptor_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def endless(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", endless)
    before = set(os.listdir("/proc/self/fd"))
    running = asyncio.create_task(told(b""))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert set(os.listdir("/proc/self/fd")) == before


async def test_an_outcome_within_the_limits_is_taken() -> None:
    ran = await told(outcome())
    assert (ran.exit, ran.killed, list(ran.left_out)) == (0, None, ["d: it is a link"])
    assert [(file.name, file.data) for file in ran.files] == [("a", b"xy"), ("b/c", b"z")]


@pytest.mark.parametrize(
    "said",
    [
        outcome(files=[["../a", 3]]),
        outcome(files=[["/a", 3]]),
        outcome(files=[["a\u0000", 3]]),
        outcome(files=[["a", 1], ["a", 2]]),
        outcome(files=[["a", 1], ["b", 1], ["c", 1]]),
        outcome(files=[["a", -1], ["b", 4]]),
        outcome(files=[["a", 2]]),
        outcome(files=[["a", 4]]),
        outcome(b"x" * 101, files=[["a", 101]]),
        outcome(b"x" * 160, files=[["a", 80], ["b", 80]]),
        outcome(exit="0"),
        outcome(exit=0, killed="never"),
        outcome(more=1),
        b"started\n",
        b"started\n{",
        b"started\n" + b"[" * 10_000,
        b"started\nnull\n",
    ],
)
async def test_an_outcome_that_cannot_be_true_is_a_crash(said: bytes) -> None:
    ran = await told(said)
    assert (ran.exit, ran.killed, ran.files) == (None, Killed.CRASHED, ())


async def test_an_outcome_without_end_is_stopped() -> None:
    endless = SCRIPT.replace("sink.write(bytes", "[sink.write(b'x' * 1000000) for _ in range(100)]; sink.write(bytes")
    command = Command((sys.executable, "-I", "-c", endless, "00"), {}, "/", lambda _: None)
    with pytest.raises(CannotRun):  # it never said that it had begun, and what it said is not kept
        await told(b"")
    ran = await confined(command, Code("pass", limits=LIMITS))
    assert (ran.killed, ran.files) == (Killed.FILES, ())


async def test_what_never_began_is_no_outcome_and_says_why() -> None:
    command = Command((sys.executable, "-c", "import sys; sys.exit('no rights')"), {}, "/", lambda _: None)
    with pytest.raises(CannotRun, match="no rights"):
        await confined(command, Code("pass"))
    with pytest.raises(CannotRun, match="No such file"):
        await confined(Command(("/nowhere/program",), {}, "/", lambda _: None), Code("pass"))
