"""The rules that a run has unless it was submitted with others: their only home."""

from offing.core.policy.rules import Condition, Policy, Rule


def default_policy(*, web: bool = False, code: bool = False) -> Policy:
    """The tools that come with the platform, and those of worlds, within the bounds of their own schemas.

    `web`: those that reach the web, too, for a run that was asked with it. `code`: the one that runs code, likewise.
    """
    return Policy(
        rules=(
            Rule(
                tool="search_library",
                when=(_text("query", 500), Condition(arg="limit", optional=True, minimum=1, maximum=20)),
                most=MOST_CALLS,
            ),
            Rule(
                tool="read_source",
                when=(
                    _text("source", 1_000),
                    Condition(arg="start", optional=True, minimum=0, maximum=2**31 - 1),
                    Condition(arg="length", optional=True, minimum=1, maximum=6_000),
                ),
                most=MOST_CALLS,
            ),
            Rule(tool="calculate", when=(_text("expression", 500),), most=MOST_CALLS),
            *(
                Rule(tool=name, when=(_text("relation", 40), _text("entity", 100)), most=MOST_CALLS)
                for name in WORLD_TOOLS
            ),
            *(_WEB_RULES if web else ()),
            *(_CODE_RULES if code else ()),
        )
    )


WORLD_TOOLS = ("amber", "birch", "cobalt", "delta", "ember", "flint")
"""What a run that is set in a world has instead of the library. They read made-up knowledge and nothing else."""

MOST_CALLS = 4_096
"""Calls of one tool in one run under the default policy."""

MOST_WEB_CALLS = 512
"""The same of one that asks other people's servers."""


MOST_CODE_CALLS = 128
"""The same of the one that runs code, which takes seconds of a processor."""


def _text(arg: str, longest: int) -> Condition:
    return Condition(arg=arg, glob="*", min_length=1, max_length=longest)


_WEB_RULES = (
    Rule(
        tool="web_search",
        when=(_text("query", 500), Condition(arg="limit", optional=True, minimum=1, maximum=20)),
        most=MOST_WEB_CALLS,
        reason="The run was asked with the web.",
    ),
    Rule(
        tool="fetch_page",
        when=(
            Condition(arg="url", glob="http*://*", min_length=8, max_length=2_048),
            Condition(arg="start", optional=True, minimum=0, maximum=2**31 - 1),
            Condition(arg="length", optional=True, minimum=1, maximum=6_000),
        ),
        most=MOST_WEB_CALLS,
        reason="The run was asked with the web.",
    ),
)

_CODE_RULES = (
    Rule(
        tool="run_python",
        when=(
            Condition(arg="code", min_length=1, max_length=20_000),
            Condition(arg="files", optional=True, max_length=8),
        ),
        most=MOST_CODE_CALLS,
        reason="The run was asked with code.",
    ),
)
