"""Whether a driver confines on this machine, found out by really trying to get out of it.

The only home of what lies about as bait. A driver that lets one probe through, or cannot run ordinary code, is refused.
"""

import os
import secrets
import socket
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from offing.sandbox.probe import Bait, Probe, ordinary, works
from offing.sandbox.probes import PROBES
from offing.sandbox.sandbox import CannotRun, Sandbox


async def problem(sandbox: Sandbox, probes: Sequence[Probe] = PROBES) -> str:
    """Why it must not be used here. Empty: ordinary code ran, and every probe was contained."""
    try:
        with baited() as bait:
            return await _tried(sandbox, probes, bait)
    except CannotRun as refused:
        return refused.reason
    except Exception as error:  # a driver that fails in an unforeseen way has not shown that it confines
        return f"its self-test failed ({type(error).__name__}: {error})"


async def _tried(sandbox: Sandbox, probes: Sequence[Probe], bait: Bait) -> str:
    if why := works(await sandbox.run(ordinary(bait))):
        return f"ordinary code does not run: {why}"
    for probe in probes:
        if why := probe.problem(await sandbox.run(probe.code(bait))):
            return f"it does not contain a probe for {probe.name}: {why}"
    return ""


@contextmanager
def baited() -> Generator[Bait]:
    """A file, two listeners and a process that nothing inside may reach."""
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
        yield Bait(secret, listener.getsockname()[1], name, os.getpid())
