"""What code does to the worker that it runs in, and to the world behind a declaration that it does nothing to it."""

import ast
from collections.abc import Iterator
from typing import Any

from offing.core.tool import Effect
from offing.sdk import Graph
from offing.sdk.tool import OwnTool
from offing.testing.checking.finding import WARNING, Finding
from offing.testing.checking.reading import Reading, Source, named, own_nodes
from offing.testing.checking.walking import Walk

SENDING = frozenset({"delete", "patch", "post", "put"})
CHANGING = frozenset({"remove", "rename", "replace", "unlink", "rmdir", "mkdir", "makedirs", "removedirs", "system"})
WRITING = frozenset({"write_text", "write_bytes", "unlink", "rename", "rmdir", "mkdir", "touch"})
BLOCKING = frozenset(
    {"time.sleep", "urllib.request.urlopen", "os.system", "socket.create_connection", "builtins.input"}
    | {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "getoutput")}
    | {f"{client}.{verb}" for client in ("requests", "requests.api", "httpx") for verb in (*SENDING, "get", "request")}
)
"""What waits without letting others go on, by its full name."""


def faults_of_effects(graph: Graph, walk: Walk) -> list[Finding]:
    """In nodes and tools, and what they call in their packages."""
    tools = [tool for tool in graph.tools if isinstance(tool, OwnTool)]
    pure = Reading([tool.work for tool in tools if tool.spec.effect is Effect.PURE]).sources
    found = [fault for source in pure for fault in _changing(source)]
    sources = [*walk.own_sources, *Reading([tool.work for tool in tools]).sources]
    return [*found, *(fault for source in sources for fault in _blocking(source))]


def _changing(source: Source) -> Iterator[Finding]:
    for call in (node for node in ast.walk(source.tree) if isinstance(node, ast.Call)):
        if name := _effect(call, source):
            why = f"A tool that is declared PURE calls {name}: it is called freely, and again after a loss."
            remedy = "Declare the effect: tool(effect=Effect.IDEMPOTENT), or AT_MOST_ONCE where a repeat would harm."
            yield Finding(WARNING, "effect", source.place(call), why, remedy)


def _effect(call: ast.Call, source: Source) -> str:
    """What a call does outside. Empty: nothing that its name shows."""
    name = named(call.func, source)
    room, _, verb = name.rpartition(".")
    changes = (
        (room.partition(".")[0] in ("requests", "httpx") and verb in SENDING)
        or (room in ("os", "posix", "nt") and verb in CHANGING)
        or (room.startswith("pathlib") and verb in WRITING)
        or room in ("smtplib", "shutil", "subprocess")
        or (name in ("builtins.open", "io.open", "_io.open") and _writes(call))
    )
    return name if changes else ""


def _writes(call: ast.Call) -> bool:
    given: list[Any] = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(isinstance(one, ast.Constant) and set(str(one.value)) & set("wax+") for one in given)


def _blocking(source: Source) -> Iterator[Finding]:
    """Calls in an async function during which the worker's other runs, and its heartbeat, stand still."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        for call in (node for node in own_nodes(function) if isinstance(node, ast.Call)):
            if (name := named(call.func, source)) in BLOCKING:
                why = f"It calls {name} in an async function: all runs of the worker wait for it."
                remedy = "Use what can be awaited, asyncio.to_thread for instance, or a plain function."
                yield Finding(WARNING, "blocks-worker", source.place(call), why, remedy)
