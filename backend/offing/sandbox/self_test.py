"""Test whether a driver contains code on this machine, by trying to escape from it.

A driver that lets one probe escape, or cannot run ordinary code, is rejected.
"""

import os
import secrets
import socket
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from offing.sandbox.escape_probe import EscapeProbe, ProbeTargets, build_smoke_test, find_smoke_test_problem
from offing.sandbox.escape_probes import PROBES
from offing.sandbox.sandbox import Sandbox, SandboxUnavailableError


async def find_problem(sandbox: Sandbox, probes: Sequence[EscapeProbe] = PROBES) -> str:
    """Return why a driver must not be used here. Empty if ordinary code ran and every probe was contained."""
    try:
        with open_targets() as targets:
            return await _try_probes(sandbox, probes, targets)
    except SandboxUnavailableError as unavailable:
        return unavailable.reason
    except Exception as error:  # a driver that fails in an unexpected way has not shown that it contains code
        return f"its self-test failed ({type(error).__name__}: {error})"


async def _try_probes(sandbox: Sandbox, probes: Sequence[EscapeProbe], targets: ProbeTargets) -> str:
    if why := find_smoke_test_problem(await sandbox.run(build_smoke_test(targets))):
        return f"ordinary code does not run: {why}"
    for probe in probes:
        if why := probe.find_problem(await sandbox.run(probe.build_request(targets))):
            return f"it does not contain a probe for {probe.name}: {why}"
    return ""


@contextmanager
def open_targets() -> Generator[ProbeTargets]:
    """Open the targets: a file, two listeners and a process that nothing in the sandbox may reach."""
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="offing-bait-") as folder:
        os.chmod(folder, 0o755)
        secret = Path(folder, "secret")
        secret.write_text(secrets.token_hex(16), "ascii")
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        name = f"offing-bait-{secrets.token_hex(8)}"
        if os.uname().sysname == "Linux":
            abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
            abstract.bind(f"\0{name}")
            abstract.listen()
        yield ProbeTargets(secret, listener.getsockname()[1], name, os.getpid())
