"""What comes back from inside is read as a third party's: whatever it says, it cannot say more than is allowed."""

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from offing.sandbox.limits import SandboxLimits
from offing.sandbox.sandbox import ExecutionRequest, ExecutionResult, KillReason, SandboxUnavailableError
from offing.sandbox.sandboxed_process import SandboxCommand, run_sandboxed

SCRIPT = """
import json, os, sys
job = json.loads(sys.stdin.buffer.readline())
with open(job["result"], "wb") as sink:
    sink.write(bytes.fromhex(sys.argv[1]))
"""

LIMITS = SandboxLimits(timeout_seconds=30, max_file_bytes=100, max_files=2, max_total_bytes=150)

GOOD: dict[str, Any] = {
    "exit_status": 0,
    "kill_reason": "",
    "files": [["a", 2], ["b/c", 1]],
    "skipped": ["d: it is a link"],
}


async def parse_outcome(outcome: bytes, limits: SandboxLimits = LIMITS) -> ExecutionResult:
    """What is made of an outcome that says this."""
    command = SandboxCommand((sys.executable, "-I", "-c", SCRIPT, outcome.hex()), {}, "/", lambda _: None)
    return await run_sandboxed(command, ExecutionRequest("pass", limits=limits))


def outcome(body: bytes = b"xyz", **changed: Any) -> bytes:
    return b"started\n" + json.dumps(GOOD | changed).encode() + b"\n" + body


async def test_a_run_that_is_cancelled_while_it_starts_leaves_no_descriptor_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def endless(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", endless)
    before = set(os.listdir("/proc/self/fd"))
    running = asyncio.create_task(parse_outcome(b""))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert set(os.listdir("/proc/self/fd")) == before


async def test_an_outcome_within_the_limits_is_taken() -> None:
    ran = await parse_outcome(outcome())
    assert (ran.exit_status, ran.kill_reason, list(ran.skipped)) == (0, None, ["d: it is a link"])
    assert [(file.name, file.data) for file in ran.files] == [("a", b"xy"), ("b/c", b"z")]


@pytest.mark.parametrize(
    "message",
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
        outcome(exit_status="0"),
        outcome(exit_status=0, kill_reason="never"),
        outcome(more=1),
        b"started\n",
        b"started\n{",
        b"started\n" + b"[" * 10_000,
        b"started\nnull\n",
    ],
)
async def test_an_outcome_that_cannot_be_true_is_a_crash(message: bytes) -> None:
    ran = await parse_outcome(message)
    assert (ran.exit_status, ran.kill_reason, ran.files) == (None, KillReason.CRASHED, ())


async def test_an_outcome_without_end_is_stopped() -> None:
    endless = SCRIPT.replace("sink.write(bytes", "[sink.write(b'x' * 1000000) for _ in range(100)]; sink.write(bytes")
    command = SandboxCommand((sys.executable, "-I", "-c", endless, "00"), {}, "/", lambda _: None)
    with pytest.raises(SandboxUnavailableError):  # it never said that it had begun, and what it said is not kept
        await parse_outcome(b"")
    ran = await run_sandboxed(command, ExecutionRequest("pass", limits=LIMITS))
    assert (ran.kill_reason, ran.files) == (KillReason.FILES, ())


async def test_what_never_began_is_no_outcome_and_says_why() -> None:
    command = SandboxCommand((sys.executable, "-c", "import sys; sys.exit('no rights')"), {}, "/", lambda _: None)
    with pytest.raises(SandboxUnavailableError, match="no rights"):
        await run_sandboxed(command, ExecutionRequest("pass"))
    with pytest.raises(SandboxUnavailableError, match="No such file"):
        await run_sandboxed(SandboxCommand(("/nowhere/program",), {}, "/", lambda _: None), ExecutionRequest("pass"))
