"""What is done to requests as they are sent, whatever their routes are: bytes, methods, addresses, headers, keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

DEEP = "deeply nested"
"""A text that stands for a value of many levels, which Python does not write as JSON."""

LEVELS = (50, 99, 100, 101, 900, 1100, 20_000)

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "post")

KEYS = (None, "", "ofg_", "ofg_0123456789ab_wrong", "lsv2_pt_of_another_service", "x" * 5000)
"""What somebody unknown sends as `x-api-key`. `None` means nothing."""

HEADERS: Sequence[tuple[str, str]] = (
    ("Host", "evil.example"),
    ("Host", "[::1"),
    ("Host", "a b"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "javascript"),
    ("Accept", "text/event-stream"),
    ("Accept", "nothing/x;q=\x7f"),
    ("Accept-Encoding", "gzip, br, zstd;q=nan"),
    ("Content-Encoding", "gzip"),
    ("Expect", "100-continue"),
    ("Expect", "the impossible"),
    ("Range", "bytes=0-1,5-2"),
    ("If-None-Match", "*"),
    ("Origin", "https://evil.example"),
    ("Origin", "null"),
    ("Cookie", "offing_session=x; offing_session=y; =; ;"),
    ("Authorization", "Basic \xff\xfe"),
    ("Authorization", "Bearer"),
    ("Mcp-Session-Id", "00000000000000000000000000000000"),
    ("Mcp-Session-Id", "\xff" * 50),
    ("Mcp-Protocol-Version", "2099-01-01"),
    ("Last-Event-ID", "\xff"),
    ("Last-Event-ID", "9" * 4000),
    ("Content-Type", "application/json; charset=\xff"),
    ("traceparent", "00-0-0-zz"),
    ("X-Large", "x" * 60_000),
    ("X-Larger", "x" * 70_000),
    ("X-Team", "\xff\xfe"),
)


@dataclass(frozen=True)
class HostileRequest:
    """A request as it is sent."""

    method: str
    target: str
    """Path and query, percent-encoded."""
    headers: Sequence[tuple[str, str]]
    """Beside those that identify the caller."""
    body: bytes | None
    key: str | None = "own"
    """What is sent instead of the caller's key. `own` means that key, `None` none."""

    def __str__(self) -> str:
        headers = [(name, value[:100]) for name, value in self.headers]
        return f"{self.method} {self.target[:300]} {headers} key={self.key!r:.50} {(self.body or b'')[:600]!r}"


def nest(random: Random, body: bytes) -> bytes:
    """Return a body in which each value that stands for a deep one is one."""
    mark = f'"{DEEP}"'.encode()
    while mark in body:
        levels = random.choice(LEVELS)
        opened, closed = random.choice(((b"[", b"]"), (b'{"a":', b"}")))
        body = body.replace(mark, opened * levels + b"1" + closed * levels, 1)
    return body


def mutate(random: Random, request: HostileRequest) -> HostileRequest:
    """Return a request with one thing changed that no well-behaved client sends."""
    return random.choice(MUTATIONS)(random, request)


def _change_method(random: Random, request: HostileRequest) -> HostileRequest:
    return replace(request, method=random.choice(METHODS))


def _change_address(random: Random, request: HostileRequest) -> HostileRequest:
    path, mark, query = request.target.partition("?")
    changed = random.choice(
        (
            f"{path}/",
            f"/{path}",
            path.replace("/", "//"),
            f"{path}/..{path}",
            f"{path}/%2e%2e/%2e%2e",
            f"{path};x=y",
            f"{path}%00",
            f"{path}%ff%fe",
            path.upper(),
            f"{path}/{'x' * 5000}",
            path.replace("/", "%2f"),
        )
    )
    return replace(request, target=random.choice((changed + mark + query, f"{path}?{query}&{'a=b&' * 2000}%ff=%ff")))


def _add_headers(random: Random, request: HostileRequest) -> HostileRequest:
    many = [(f"X-Many-{number}", "x" * random.choice((0, 10, 400))) for number in range(random.choice((50, 300)))]
    several = dict(random.sample(HEADERS, random.choice((1, 1, 3))))
    added = random.choice((many, list(several.items())))
    return replace(request, headers=[*request.headers, *added])


def _change_key(random: Random, request: HostileRequest) -> HostileRequest:
    return replace(request, key=random.choice(KEYS))


def _change_bytes(random: Random, request: HostileRequest) -> HostileRequest:
    body = request.body or b'{"a": "b"}'
    place = random.randrange(len(body) + 1)
    broken = random.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\\ud800", b"\0", b"\\u0000"))
    changed: Sequence[Callable[[], bytes]] = (
        lambda: body[:place],
        lambda: body[:place] + broken + body[place:],
        lambda: body.replace(b'"', b'"' + broken, random.randint(1, 8)),
        lambda: b"\xef\xbb\xbf" + body,
        lambda: body.decode("utf-8", "replace").encode("utf-16"),
        lambda: body + body,
        lambda: body.replace(b"}", b', "id": 1, "id": 2}', 1),
        lambda: b" " * 100_000 + body,
    )
    return replace(request, body=random.choice(changed)())


def _send_batch(random: Random, request: HostileRequest) -> HostileRequest:
    one = request.body if request.body and len(request.body) < 5000 else b"{}"
    return replace(request, body=b"[" + b",".join([one] * random.choice((0, 1, 2, 1000))) + b"]")


MUTATIONS: Sequence[Callable[[Random, HostileRequest], HostileRequest]] = (
    _change_method,
    _change_address,
    _add_headers,
    _change_key,
    _change_bytes,
    _send_batch,
)
