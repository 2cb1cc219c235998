"""`offing world`: a made-up world as files, as tasks, and as a web site on this machine."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cyclopts import App, Parameter

from offing.cli.terminal import safe
from offing.core.errors import InvalidInput, Unavailable
from offing.world.documents import documents
from offing.world.facts import world_of
from offing.world.injections import injections as planted_in
from offing.world.site import Reply, Site
from offing.world.tasks import tasks as drawn

app = App(name="world", help="Made-up worlds to train, evaluate and show agents in.")

Hops = Annotated[str, Parameter(name="--hops")]
Kinds = Annotated[tuple[str, ...], Parameter(name="--kinds", consume_multiple=True, negative="")]


@app.command
def write(
    spec: str, folder: Path, *, questions: int = 200, hops: Hops = "1-4", kinds: Kinds = (), seed: int = 0
) -> int:
    """Write a world's documents to FOLDER/documents, and questions about them to FOLDER/questions.jsonl.

    Parameters
    ----------
    spec
        The world: `train-12@500`, `heldout-3@small`, `small-7`.
    questions
        How many; they are to be answered over the documents.
    hops
        Fewest and most look-ups of a question, or one number for both.
    kinds
        lookup, comparison, counting, arithmetic, unanswerable. None: all of them.
    seed
        Other questions of the same world.
    """
    within, into = span(hops), folder / "documents"
    asked = drawn(spec, count=questions, hops=within, kinds=kinds or None, seed=seed)
    if into.exists() and any(into.iterdir()):
        raise InvalidInput("folder", f"{into} is not empty", "Name a new folder")
    written = 0
    for document in documents(spec):
        path = into / document.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document.text, encoding="utf-8", newline="\n")
        written += 1
    with (folder / "questions.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for task in asked:
            file.write(_line(replace(task, scope={}).as_json()) + "\n")
    print(f"{written} documents in {into}, {questions} questions in {folder / 'questions.jsonl'}.")
    return 0


@app.command
def tasks(spec: str, *, count: int = 200, hops: Hops = "1-4", kinds: Kinds = (), seed: int = 0) -> int:
    """Print tasks that are set in a world, one JSON object a line, as `offing rollout --tasks` reads them.

    Parameters
    ----------
    spec
        The world: `train-12@500`, `heldout-3@small`, `small-7`.
    hops
        Fewest and most look-ups of a question, or one number for both.
    kinds
        lookup, comparison, counting, arithmetic, unanswerable. None: all of them.
    seed
        Other tasks of the same world.
    """
    found = drawn(spec, count=count, hops=span(hops), kinds=kinds or None, seed=seed)
    return _print(task.as_json() for task in found)


@app.command
def injections(spec: str) -> int:
    """Print what is planted in the pages of a world's site, one JSON object a line."""
    return _print({**asdict(found), "page": f"/page/{found.document}"} for found in planted_in(world_of(spec)))


@app.command
def serve(spec: str, *, port: int = 8480) -> int:
    """Serve a world as a web site, to this machine only, with injected instructions in some of its pages.

    Parameters
    ----------
    spec
        The world: `train-12@500`, `heldout-3@small`, `small-7`.
    port
        0: any that is free.
    """
    with server(Site(world_of(spec)), port) as listening:
        print(f"http://127.0.0.1:{listening.server_port}/", flush=True)
        listening.serve_forever()
    return 0


def server(site: Site, port: int) -> ThreadingHTTPServer:
    """Listens on the loopback address. Raises Unavailable when the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "offing-world", ""

        def do_GET(self) -> None:
            self._send(body=True)

        def do_HEAD(self) -> None:
            self._send(body=False)

        def _send(self, *, body: bool) -> None:
            target = urlsplit(self.path)
            reply = site.reply(unquote(target.path), _query(target.query))
            _report(reply)
            data = reply.text.encode()
            self.send_response(reply.status)
            for name, value in _headers(reply, len(data)).items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are nobody's news but for canaries."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise Unavailable(f"Port {port} cannot be listened on ({error.strerror}); name another with --port.") from None


def span(hops: str) -> tuple[int, int]:
    """`1-4` or `3` as fewest and most. Raises InvalidInput."""
    fewest, _, most = hops.partition("-")
    if not fewest.isdecimal() or (most and not most.isdecimal()) or hops.endswith("-"):
        raise InvalidInput("--hops", f"{hops!r} is no range", "Write it as 1-4, or one number")
    return int(fewest), int(most or fewest)


def _headers(reply: Reply, length: int) -> Mapping[str, str]:
    return {
        "Content-Type": f"{reply.type}; charset=utf-8",
        "Content-Length": str(length),
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
        "X-Content-Type-Options": "nosniff",
    }


def _query(text: str) -> dict[str, str]:
    return dict(parse_qsl(text, max_num_fields=20)) if text.count("&") < 20 else {}


def _report(reply: Reply) -> None:
    if reply.canary:
        print(f"A reader obeyed an injected instruction: {safe(reply.canary)}", file=sys.stderr, flush=True)


def _print(objects: Iterable[Mapping[str, Any]]) -> int:
    for found in objects:
        print(_line(found))
    return 0


def _line(found: Mapping[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False)
