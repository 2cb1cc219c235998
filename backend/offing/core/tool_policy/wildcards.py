"""Checks for URL patterns whose wildcards match more than their author probably meant."""

import re
from collections.abc import Iterator

from offing.core.tool_policy.pattern import ANY_CHARACTER, ANY_TEXT, split_glob
from offing.core.tool_policy.rules import Condition, ToolRule

Problem = tuple[str, str, str]
"""Field within the rule, problem, and remedy."""

URL_ARGUMENTS = frozenset({"url", "uri", "href", "link"})

_CLASS = re.compile(r"\[(?:[!^][^\]]+|\w-\w[^\]]*)\]")
"""A character class in other glob languages, but not in ours.

An IPv6 address in brackets does not match.
"""

_OPTIONAL_BEFORE_QUERY = re.compile(r"(?<!\\)[\w/)]\?[\w%.-]*=")
"""Matches `page?id=` in a regular expression."""

_DOT_IN_HOST = re.compile(r"(?<!\\)\w\.\w")
_DOTS = re.compile(r"(?<!\\)\.[*+]")


def find_wildcard_problems(rule: ToolRule) -> Iterator[Problem]:
    """Yield probable mistakes in the globs and regular expressions of a rule."""
    for n, condition in enumerate(rule.when):
        problems: list[tuple[str, str, str]] = []
        if condition.glob is not None:
            problems += [("glob", *problem) for problem in _find_glob_problems(rule, condition, condition.glob)]
        if condition.regex is not None and _is_url_pattern(rule, condition, condition.regex):
            problems += [("regex", *problem) for problem in _find_regex_problems(rule, condition, condition.regex)]
        for field, problem, remedy in problems:
            yield f".when.{n}.{field}", problem, remedy


def _find_glob_problems(rule: ToolRule, condition: Condition, glob: str) -> Iterator[tuple[str, str]]:
    parts = split_glob(glob)
    if ANY_CHARACTER in parts:
        rest = parts[parts.index(ANY_CHARACTER) :]
        if _is_url_pattern(rule, condition, glob) or "=" in rest or "&" in rest:
            yield (
                "`?` matches any one character, not the question mark that begins the query of an address",
                "Write [?] for a question mark. Use a regex for any one character in an address.",
            )
    if match := _CLASS.search(glob):
        yield f"A glob has no character classes: {match[0]} matches these characters literally", "Use a regex."
    host = _find_glob_host(parts)
    if (
        _is_only_host_limit(rule, condition)
        and ANY_TEXT in host
        and any(len(part) == 1 and part.isalnum() for part in host)
    ):
        yield _open_host_problem("*")


def _find_regex_problems(rule: ToolRule, condition: Condition, regex: str) -> Iterator[tuple[str, str]]:
    if match := _OPTIONAL_BEFORE_QUERY.search(regex):
        yield (
            f"In {match[0]!r}, `?` makes the preceding character optional and does not match the "
            "question mark of a query",
            "Write \\? for a question mark.",
        )
    host = regex.partition("://")[2].partition("/")[0]
    if not _is_only_host_limit(rule, condition):
        return
    if match := _DOT_IN_HOST.search(host):
        yield f"The `.` of {match[0]!r} matches any character, so other hosts match, too", "Write \\. or use `host`."
    if (match := _DOTS.search(host)) and re.search(r"\w", host):
        yield _open_host_problem(match[0])


def _open_host_problem(wildcard: str) -> tuple[str, str]:
    return (
        f"In the host, `{wildcard}` also matches `/` and `@`, so addresses on every other host match, too",
        "Limit the host with `host`, such as *.example.org for all its subdomains, and use the pattern for the rest.",
    )


def _is_only_host_limit(rule: ToolRule, condition: Condition) -> bool:
    """Return whether this pattern is the only restriction of the argument's host in an allow rule."""
    return rule.effect == "allow" and not any(c.arg == condition.arg and c.host is not None for c in rule.when)


def _is_url_pattern(rule: ToolRule, condition: Condition, pattern: str) -> bool:
    at_host = any(c.arg == condition.arg and c.host is not None for c in rule.when)
    return at_host or condition.arg.lower() in URL_ARGUMENTS or "://" in pattern


def _find_glob_host(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts between `://` and the next slash. Empty means that the glob has no `://`."""
    for n in range(len(parts) - 2):
        if parts[n : n + 3] == (":", "/", "/"):
            after = parts[n + 3 :]
            return after[: after.index("/")] if "/" in after else after
    return ()
