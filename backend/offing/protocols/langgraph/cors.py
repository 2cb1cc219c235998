"""Which pages of other origins may call LangGraph's API, and what they may read of its answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from offing.core.errors import InvalidInput

EXPOSED_HEADERS = ("Content-Location", "Location", "X-Pagination-Total", "X-Pagination-Next")
"""Headers of answers that the clients read."""

LOCAL_ORIGIN = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?"
"""Origins of pages that this machine serves."""

KEYS = (
    "allow_origins",
    "allow_origin_regex",
    "allow_methods",
    "allow_headers",
    "allow_credentials",
    "expose_headers",
    "max_age",
)
"""Keys of `http.cors`."""


@dataclass(frozen=True, slots=True)
class CorsRules:
    """Rules for pages of other origins. Without an origin, none of them may call the API."""

    origins: tuple[str, ...] = ()
    """`*` means all."""
    origin_regex: str | None = None
    methods: tuple[str, ...] = ("*",)
    headers: tuple[str, ...] = ("*",)
    exposed_headers: tuple[str, ...] = EXPOSED_HEADERS
    credentials: bool = False
    max_age_seconds: int = 600

    @property
    def is_open(self) -> bool:
        """Whether any other origin is allowed."""
        return bool(self.origins or self.origin_regex)

    def allows(self, origin: str) -> bool:
        """Return whether pages of this origin may call the API."""
        by_name = "*" in self.origins or origin in self.origins
        return by_name or (self.origin_regex is not None and re.fullmatch(self.origin_regex, origin) is not None)

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return an application that adds the headers that these rules ask for to all answers."""
        return CORSMiddleware(
            app,
            allow_origins=self.origins,
            allow_origin_regex=self.origin_regex,
            allow_methods=self.methods,
            allow_headers=self.headers,
            allow_credentials=self.credentials,
            expose_headers=self.exposed_headers,
            max_age=self.max_age_seconds,
        )


def parse_cors(document: Mapping[str, Any], origins: str = "") -> CorsRules:
    """Return the rules of `http.cors` and OFFING_CORS_ORIGINS, where commas separate origins. Raises InvalidInput."""
    if unknown := sorted(set(document) - set(KEYS)):
        raise InvalidInput(f"http.cors.{unknown[0]}", "it is not known", f"Use any of {', '.join(KEYS)}.")
    named = tuple(one.strip().rstrip("/") for one in origins.split(",") if one.strip())
    regex = document.get("allow_origin_regex")
    try:
        re.compile(regex or "")
    except (re.error, TypeError) as error:
        raise InvalidInput("http.cors.allow_origin_regex", str(error), "Correct it.") from error
    rules = CorsRules(
        origins=(*_texts(document, "allow_origins", ()), *named),
        origin_regex=regex or None,
        methods=_texts(document, "allow_methods", ("*",)),
        headers=_texts(document, "allow_headers", ("*",)),
        exposed_headers=tuple(dict.fromkeys((*EXPOSED_HEADERS, *_texts(document, "expose_headers", ())))),
        credentials=document.get("allow_credentials") is True,
        max_age_seconds=int(document.get("max_age") or 600),
    )
    if rules.credentials and "*" in rules.origins:
        problem = "every origin could use a person's session"
        raise InvalidInput("http.cors.allow_credentials", problem, "Name the origins.")
    return rules


def _texts(document: Mapping[str, Any], key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = document.get(key)
    if value is None:
        return default
    items: list[Any] = cast(list[Any], value) if isinstance(value, list) else [None]
    if not all(isinstance(one, str) for one in items):
        raise InvalidInput(f"http.cors.{key}", "it is not a list of texts", "Correct it.")
    return tuple(items)
