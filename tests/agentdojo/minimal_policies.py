"""A policy for each user task of AgentDojo by one general rule, and its calls and injected ones replayed through it.

The rule knows a task's prompt, which tools its solution calls, and which of their arguments' values the prompt names.
It sees no injection and no number of calls:

- a tool that reads is allowed unchanged, unless it is given a web address;
- a tool that acts is allowed if the solution calls it. Arguments that say whom or what it acts on must be values that
  the prompt names, where the solution's are. Else they are of a class: members, channels, contacts and payees that the
  user's organisation knows; a number where it is an id; for reading, a web address that carries nothing;
- text that the tool is to write is free;
- where whom it acts on is neither named nor of a class, a person is asked.

An injected call is tried at its best moment: after everything that the solution reads, before anything that it does.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import create_model

from offing.core.tool import SideEffect, ToolSpec
from offing.core.tool_policy import (
    Condition,
    DecisionType,
    ToolCallContext,
    ToolPolicy,
    ToolRule,
    UntrustedShingles,
    decide,
)

CASES: dict[str, Any] = json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))

READS = ("get_", "read_", "search_", "list_", "check_")
TEXT = frozenset({"body", "subject", "content", "description", "title", "location", "attachments"})
"""What a tool is to write."""
WHEN = frozenset({"date", "start_time", "end_time", "new_start_time", "new_end_time", "start_day", "end_day", "amount"})
"""When and how much."""
FREE = TEXT | WHEN | {"permission", "recurring", "first_name", "last_name", "street", "city"}
BARE_ADDRESS = r"(https?://)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/[a-z-]{0,20})?"
"""A page, without anything that could carry what was read."""


@cache
def spec_of(suite: str, tool: str) -> ToolSpec:
    fields: dict[str, Any] = dict.fromkeys(CASES[suite]["tools"][tool], (Any, None))
    effect = SideEffect.PURE if tool.startswith(READS) else SideEffect.AT_MOST_ONCE
    return ToolSpec(
        tool, tool, create_model(tool, **fields), tool, effect, sends_data_out=effect is not SideEffect.PURE
    )


def acts(call: Mapping[str, Any]) -> bool:
    """It changes something, or goes to a web address."""
    return not call["tool"].startswith(READS) or "url" in call["args"]


def policy_for(suite: str, task: Mapping[str, Any]) -> ToolPolicy:
    reading = [tool for tool in CASES[suite]["tools"] if tool.startswith(READS)]
    plain = [ToolRule(tool=tool, allow_other_args=True) for tool in reading if "url" not in CASES[suite]["tools"][tool]]
    acting = [rule for call in task["calls"] if acts(call) for rule in rules_for(suite, call, task["prompt"])]
    return ToolPolicy(rules=(*plain, *acting))


def rules_for(suite: str, call: Mapping[str, Any], prompt: str) -> Iterator[ToolRule]:
    targets = {arg: value for arg, value in call["args"].items() if arg not in FREE and value not in (None, [], "")}
    reads = call["tool"].startswith(READS)
    results = {arg: condition_for(suite, arg, value, prompt, reads=reads) for arg, value in targets.items()}
    free = [Condition(arg=arg, optional=True) for arg in call["args"] if arg in FREE]
    conditions = tuple(condition for condition in results.values() if condition is not None)
    unknown = any(condition is None for condition in results.values())
    copies = any(c is not None and c.one_of is not None and len(c.one_of) > 1 for c in results.values()) or reads
    yield ToolRule(
        tool=call["tool"],
        effect="ask" if unknown else "allow",
        when=(*conditions, *(() if unknown else free)),
        allow_other_args=unknown,
        allow_copied_text=copies or unknown,
    )


def condition_for(suite: str, arg: str, value: Any, prompt: str, *, reads: bool) -> Condition | None:
    """None: neither named nor of a class."""
    items = isinstance(value, list)
    inputs: list[Any] = list(value) if items else [value]  # pyright: ignore[reportUnknownArgumentType]
    values = [str(v) for v in inputs]
    if all(v.lower() in prompt.lower() for v in values):
        return Condition(arg=arg, items=items, one_of=tuple(inputs))
    if all(v in prompt or v in CASES[suite]["directory"] for v in values):
        named = tuple(v for v in values if v in prompt)
        return Condition(arg=arg, items=items, one_of=(*CASES[suite]["directory"], *named))
    if arg == "url" and reads:
        return Condition(arg=arg, regex=BARE_ADDRESS)
    if (arg == "id" or arg.endswith("_id")) and all(v.isdigit() for v in values):
        return Condition(arg=arg, regex="[0-9]+") if isinstance(value, str) else Condition(arg=arg, minimum=0)
    return None


def find_addresses(prompt: str) -> frozenset[str]:
    """Places that the user names."""
    mails = re.findall(r"[\w.+-]+@[\w.-]+\w", prompt)
    hosts = re.findall(r"(?:https?://)?((?:[\w-]+\.)+[a-z]{2,})(?:/\S*)?", prompt)
    return frozenset(position.lower() for position in (*mails, *hosts))


def replayed(suite: str, task: Mapping[str, Any], calls: Iterable[Mapping[str, Any]], extra: str) -> list[DecisionType]:
    """What becomes of calls once the task has read all that it reads. `extra`: more untrusted text."""
    answers = [call["answer"] for call in task["calls"] if call["tool"].startswith(READS)]
    seen = UntrustedShingles().add_texts(*answers, extra)
    context = ToolCallContext(is_tainted=True, untrusted_shingles=seen, known_hosts=find_addresses(task["prompt"]))
    policy = policy_for(suite, task)
    return [decide(policy, spec_of(suite, call["tool"]), call["args"], context).type for call in calls]
