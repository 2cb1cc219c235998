"""Patterns for web addresses whose wildcards match something else than their author meant."""

import re
from collections.abc import Iterator

from offing.core.policy.pattern import ANY_CHARACTER, ANY_TEXT, glob_parts
from offing.core.policy.rules import Condition, Rule

Problem = tuple[str, str, str]
"""Field within the rule, problem, remedy."""

ADDRESS_ARGUMENTS = frozenset({"url", "uri", "href", "link"})

_CLASS = re.compile(r"\[(?:[!^][^\]]+|\w-\w[^\]]*)\]")
"""What is a character class in other languages. An IPv6 address in brackets is none."""

_OPTIONAL_BEFORE_QUERY = re.compile(r"(?<!\\)[\w/)]\?[\w%.-]*=")
"""In a regular expression: `page?id=`."""

_DOT_IN_HOST = re.compile(r"(?<!\\)\w\.\w")
_DOTS = re.compile(r"(?<!\\)\.[*+]")


def wildcard_problems(rule: Rule) -> Iterator[Problem]:
    """Yield what is probably mistaken in the rule's globs and regular expressions."""
    for n, condition in enumerate(rule.when):
        found: list[tuple[str, str, str]] = []
        if condition.glob is not None:
            found += [("glob", *problem) for problem in _about_glob(rule, condition, condition.glob)]
        if condition.regex is not None and _is_address(rule, condition, condition.regex):
            found += [("regex", *problem) for problem in _about_regex(rule, condition, condition.regex)]
        for field, problem, remedy in found:
            yield f".when.{n}.{field}", problem, remedy


def _about_glob(rule: Rule, condition: Condition, glob: str) -> Iterator[tuple[str, str]]:
    parts = glob_parts(glob)
    if ANY_CHARACTER in parts:
        rest = parts[parts.index(ANY_CHARACTER) :]
        if _is_address(rule, condition, glob) or "=" in rest or "&" in rest:
            yield (
                "`?` stands for any one character, not for the question mark that begins an address's query",
                "Write [?] for a question mark. For any one character in an address, use a regex.",
            )
    if found := _CLASS.search(glob):
        yield f"A glob has no classes: {found[0]} stands for these characters themselves", "Use a regex."
    host = _host_of_glob(parts)
    if _must_fix_host(rule, condition) and ANY_TEXT in host and any(len(part) == 1 and part.isalnum() for part in host):
        yield _open_host("*")


def _about_regex(rule: Rule, condition: Condition, regex: str) -> Iterator[tuple[str, str]]:
    if found := _OPTIONAL_BEFORE_QUERY.search(regex):
        yield (
            f"In {found[0]!r}, `?` makes the character before it optional and is not the question mark of a query",
            "Write \\? for a question mark.",
        )
    host = regex.partition("://")[2].partition("/")[0]
    if not _must_fix_host(rule, condition):
        return
    if found := _DOT_IN_HOST.search(host):
        yield f"The `.` of {found[0]!r} stands for any character, so other hosts match, too", "Write \\. or use `host`."
    if (found := _DOTS.search(host)) and re.search(r"\w", host):
        yield _open_host(found[0])


def _open_host(wildcard: str) -> tuple[str, str]:
    return (
        f"In the host, `{wildcard}` also matches `/` and `@`, so addresses at every other host match, too",
        "Limit the host by `host`, such as *.example.org for all hosts below it, and keep the pattern for the rest.",
    )


def _must_fix_host(rule: Rule, condition: Condition) -> bool:
    """Whether this pattern is all that an allow rule says about the argument's host."""
    return rule.effect == "allow" and not any(c.arg == condition.arg and c.host is not None for c in rule.when)


def _is_address(rule: Rule, condition: Condition, pattern: str) -> bool:
    at_host = any(c.arg == condition.arg and c.host is not None for c in rule.when)
    return at_host or condition.arg.lower() in ADDRESS_ARGUMENTS or "://" in pattern


def _host_of_glob(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts between `://` and the next slash. Empty if the glob has no `://`."""
    for n in range(len(parts) - 2):
        if parts[n : n + 3] == (":", "/", "/"):
            after = parts[n + 3 :]
            return after[: after.index("/")] if "/" in after else after
    return ()
