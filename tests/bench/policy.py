"""The tool policy: CPU time of a decision, for ordinary calls and for the most expensive ones."""

import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from offing.core.tool import ToolSpec
from offing.core.tool_policy import (
    Condition,
    ToolCallContext,
    ToolPolicy,
    ToolRule,
    UntrustedShingles,
    decide,
)
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy
from tests.bench.measurement import Aim, Measurement, percentile
from tests.unit.core.tool_policy.bypasses import GOOD, GUARDED
from tests.unit.core.tool_policy.test_bypasses import POLICY, SPEC

DECISIONS = 20_000
WORDS = 20_000
"""Words of untrusted text that the run has read."""


def policy_speed() -> list[Measurement]:
    chance = Random(1)
    read = " ".join(f"{chance.getrandbits(40):x}" for _ in range(WORDS))
    moment = ToolCallContext(
        is_tainted=True,
        untrusted_shingles=UntrustedShingles().add_texts(read),
        known_hosts=frozenset({"docs.example.org"}),
    )
    tools = {tool.spec.name: tool.spec for tool in create_tools(web=True)}
    page = {"url": "https://docs.example.org/guide/intro?page=2", "start": 0, "length": 3000}
    usual = _times(default_tool_policy(web=True), tools["fetch_page"], [page], moment)
    many = ToolPolicy(rules=(*POLICY.rules, *_rules()))
    guarded = _times(many, SPEC, [args for _, args in GUARDED] + [GOOD], moment)
    return [
        *_measurements("decision under the default tool policy, for a web page", usual),
        *_measurements("decision under 100 rules with patterns, hosts and paths, hostile arguments", guarded),
        Measurement("decisions per second, one core, default tool policy", (len(usual) / sum(usual),), "/s"),
    ]


def _rules() -> list[ToolRule]:
    """Return forbid rules that are all evaluated and whose patterns are as expensive as possible."""
    patterns = [f"(a|b|{n})*[a-f]{{1,20}}(x|y)?" for n in range(33)]
    hosts = [Condition(arg="url", host=(f"*.evil{n}.net", f"evil{n}.org")) for n in range(33)]
    paths = [Condition(arg="path", path=f"/etc/{n}") for n in range(33)]
    conditions = (*(Condition(arg="code", regex=pattern) for pattern in patterns), *hosts, *paths)
    return [ToolRule(tool=SPEC.name, effect="forbid", when=(condition,)) for condition in conditions]


def _times(
    policy: ToolPolicy, spec: ToolSpec, calls: Sequence[Mapping[str, Any]], moment: ToolCallContext
) -> list[float]:
    taken: list[float] = []
    for n in range(DECISIONS):
        began = time.thread_time()
        decide(policy, spec, calls[n % len(calls)], moment)
        taken.append(time.thread_time() - began)
    return taken


def _measurements(what: str, taken: list[float]) -> list[Measurement]:
    return [
        Measurement(f"{what}, median", (percentile(taken, 0.5),), "µs"),
        Measurement(f"{what}, 99th percentile", (percentile(taken, 0.99),), "µs", aim=Aim("under 1 ms", at_most=0.001)),
    ]
