"""A client of pyright's language server, which finds every use of a symbol in the tree."""

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlparse

Range = tuple[int, int, int, int]
"""First line, first column, last line, last column; lines and UTF-16 columns count from 0."""


class LanguageServer:
    """pyright's language server over one tree, which is not changed while the server runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._next_id = 0
        self._opened: set[Path] = set()
        self._process = subprocess.Popen(
            [root / ".venv/bin/pyright-langserver", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"NODE_OPTIONS": "--max-old-space-size=12000"},
        )
        self._initialize()

    def find_references(self, path: Path, line: int, column: int) -> list[tuple[Path, Range]]:
        """Return every place that names the symbol at a position, its definition included."""
        self._open(path)
        found = self._request(
            "textDocument/references",
            {
                "textDocument": {"uri": path.as_uri()},
                "position": {"line": line, "character": column},
                "context": {"includeDeclaration": True},
            },
        )
        return [(_path_of(item["uri"]), _range_of(item["range"])) for item in cast(list[Any], found or [])]

    def wait_until_ready(self, seconds: float = 15) -> None:
        """Wait until the server has listed the files of the tree, which it does not announce."""
        time.sleep(seconds)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _initialize(self) -> None:
        self._request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": self.root.as_uri(),
                "workspaceFolders": [{"uri": self.root.as_uri(), "name": "offing"}],
                "capabilities": {"workspace": {"configuration": True}},
            },
        )
        self._send({"method": "initialized", "params": {}})

    def _open(self, path: Path) -> None:
        if path in self._opened:
            return
        self._opened.add(path)
        document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text()}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def _request(self, method: str, params: object) -> Any:
        self._next_id += 1
        number = self._next_id
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message and "id" in message:
                self._answer(message)
            elif message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message.get("result")

    def _answer(self, message: Mapping[str, Any]) -> None:
        """Answer a request of the server's: its settings are those of the project's own configuration."""
        result: list[dict[str, object]] | None = None
        if message["method"] == "workspace/configuration":
            result = [{} for _ in message["params"]["items"]]
        self._send({"id": message["id"], "result": result})

    def _send(self, message: Mapping[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while header := self._process.stdout.readline().strip():
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise RuntimeError("The language server has ended.")
        return cast(dict[str, Any], json.loads(self._process.stdout.read(length)))


def _path_of(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))


def _range_of(found: Mapping[str, Mapping[str, int]]) -> Range:
    start, end = found["start"], found["end"]
    return start["line"], start["character"], end["line"], end["character"]
