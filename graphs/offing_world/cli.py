"""`offing world`: write a synthetic world as files or tasks, or serve it as a local web site."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cyclopts import App, Parameter

from offing.cli.terminal import strip_control
from offing.core.errors import InvalidInput, Unavailable
from offing_world.documents import iter_documents
from offing_world.facts import world_from_name
from offing_world.injections import iter_injections as planted_in
from offing_world.site import SiteResponse, WorldSite
from offing_world.tasks import generate_tasks as drawn

app = App(name="world", help="Synthetic worlds to train, evaluate and demonstrate agents.")

Hops = Annotated[str, Parameter(name="--hops")]
Kinds = Annotated[tuple[str, ...], Parameter(name="--kinds", consume_multiple=True, negative="")]


@app.command
def write(
    spec: str, folder: Path, *, questions: int = 200, hops: Hops = "1-4", kinds: Kinds = (), seed: int = 0
) -> int:
    """Write the documents of a world and questions about them.

    The documents are in FOLDER/documents, and the questions in FOLDER/questions.jsonl.

    Parameters
    ----------
    spec
        The world: `train-12@500`, `heldout-3@small`, `small-7`.
    questions
        Number of questions. They can be answered from the documents.
    hops
        Minimum and maximum number of look-ups per question, or one number for both.
    kinds
        lookup, comparison, counting, arithmetic, unanswerable. Default: all of them.
    seed
        Seed of the questions.
    """
    hop_range, into = parse_hops(hops), folder / "documents"
    generated_tasks = drawn(spec, count=questions, hops=hop_range, kinds=kinds or None, seed=seed)
    if into.exists() and any(into.iterdir()):
        raise InvalidInput("folder", f"{into} is not empty", "Use a new folder.")
    written = 0
    for document in iter_documents(spec):
        path = into / document.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document.text, encoding="utf-8", newline="\n")
        written += 1
    with (folder / "questions.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for task in generated_tasks:
            file.write(_render_line(replace(task, scope={}).as_json()) + "\n")
    print(f"{written} documents in {into}, {questions} questions in {folder / 'questions.jsonl'}.")
    return 0


@app.command
def tasks(
    spec: str, *, count: int = 200, hops: Hops = "1-4", kinds: Kinds = (), seed: int = 0, compositions: str = ""
) -> int:
    """Print tasks of a world as JSON, one object per line.

    `offing rollouts collect --tasks` reads this format.

    Parameters
    ----------
    spec
        The world: `train-12@500`, `heldout-3@small`, `small-7`.
    hops
        Minimum and maximum number of look-ups per question, or one number for both.
    kinds
        lookup, comparison, counting, arithmetic, unanswerable. Default: all of them.
    seed
        Seed of the tasks.
    compositions
        trained, held-out or all: what questions combine apart from names. Default: all.
    """
    generated_tasks = drawn(
        spec, count=count, hops=parse_hops(hops), kinds=kinds or None, seed=seed, compositions=compositions
    )
    return _print_json_lines(task.as_json() for task in generated_tasks)


@app.command
def injections(spec: str) -> int:
    """Print the injected instructions in the pages of a world's site as JSON, one object per line."""
    return _print_json_lines(
        {**asdict(injection), "page": f"/page/{injection.document_number}"}
        for injection in planted_in(world_from_name(spec))
    )


@app.command
def serve(spec: str, *, port: int = 8480) -> int:
    """Serve a world as a web site on the loopback address. Some pages contain injected instructions.

    Parameters
    ----------
    spec
        The world: `train-12@500`, `heldout-3@small`, `small-7`.
    port
        Port to listen on. `0` selects a free port.
    """
    with open_server(WorldSite(world_from_name(spec)), port) as listening:
        print(f"http://127.0.0.1:{listening.server_port}/", flush=True)
        listening.serve_forever()
    return 0


def open_server(site: WorldSite, port: int) -> ThreadingHTTPServer:
    """Open a server on the loopback address. Raises Unavailable if the port is in use."""

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "offing-world", ""

        def do_GET(self) -> None:
            self._send(body=True)

        def do_HEAD(self) -> None:
            self._send(body=False)

        def _send(self, *, body: bool) -> None:
            target = urlsplit(self.path)
            reply = site.build_response(unquote(target.path), _parse_query(target.query))
            _print_response(reply)
            data = reply.text.encode()
            self.send_response(reply.status)
            for name, value in _response_headers(reply, len(data)).items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Do not log requests. Only canaries are reported."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise Unavailable(f"Port {port} cannot be used ({error.strerror}). Choose another with --port.") from None


def parse_hops(hops: str) -> tuple[int, int]:
    """Parse `1-4` or `3` as minimum and maximum. Raises InvalidInput."""
    min_hops, _, max_hops = hops.partition("-")
    if not min_hops.isdecimal() or (max_hops and not max_hops.isdecimal()) or hops.endswith("-"):
        raise InvalidInput("--hops", f"{hops!r} is not a range", "For example, use 2 or 1-4.")
    return int(min_hops), int(max_hops or min_hops)


def _response_headers(response: SiteResponse, length: int) -> Mapping[str, str]:
    return {
        "Content-Type": f"{response.media_type}; charset=utf-8",
        "Content-Length": str(length),
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
        "X-Content-Type-Options": "nosniff",
    }


def _parse_query(text: str) -> dict[str, str]:
    return dict(parse_qsl(text, max_num_fields=20)) if text.count("&") < 20 else {}


def _print_response(response: SiteResponse) -> None:
    if response.canary:
        print(
            f"A client followed an injected instruction: {strip_control(response.canary)}", file=sys.stderr, flush=True
        )


def _print_json_lines(objects: Iterable[Mapping[str, Any]]) -> int:
    for value in objects:
        print(_render_line(value))
    return 0


def _render_line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)
