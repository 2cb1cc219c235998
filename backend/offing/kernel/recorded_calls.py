"""The calls of a run that are on record, as an epoch of a claim takes them up."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

from offing.core.errors import NonDeterminismError
from offing.core.report import Report
from offing.core.step import CallKey, Step, StepKind, shortened
from offing.kernel.call_key import Call
from offing.kernel.call_path import CallPath
from offing.sdk import Role

GRACE_SECONDS = 5.0
"""Time that calls which are made side by side have to ask for what is on record, before one with a side effect that is
not on record counts as another than those."""


OBSERVATIONS = frozenset({StepKind.TOOL})
NOTES = frozenset({StepKind.NOTE})
"""Kinds that a call may be recorded as."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A side effect that was declared and that no step records: a tool call, or a child run."""

    key: CallKey
    name: str
    args: Mapping[str, Any]


WITHIN = "within"
"""In a step: the call of the graph's own tool that it is part of, as `key_text` has it."""


def key_text(key: CallKey) -> str:
    """Return a call key as text."""
    return f"{key.superstep}/{key.path}#{key.digest}/{key.ordinal}"


def parts_of(steps: Mapping[CallKey, Step], key: CallKey) -> list[CallKey]:
    """Return the keys of what a tool's call had called itself."""
    whole = key_text(key)
    return [one for one, step in steps.items() if step.payload.get(WITHIN) == whole]


class RecordedCalls(Protocol):
    """What the journal reads recorded results from."""

    @property
    def count(self) -> int:
        """Calls that are on record and were not taken up."""
        ...

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left that a node may ask for again."""
        ...

    def take(self, call: Call, expected: frozenset[str]) -> Step | None:
        """Return what was recorded for a call, once. Raises NonDeterminismError for a step of another kind."""
        ...

    def is_declared(self, call: Call) -> bool:
        """Return whether an earlier claim declared the side effect of this very call."""
        ...

    @property
    def seqs(self) -> Iterable[int]:
        """Steps that are on record and were not taken up."""
        ...

    def check_new(self, call: Call) -> None:
        """A call that is not on record is about to be made. Raises where it must not be."""
        ...

    async def check_effect(self, call: Call) -> None:
        """A call with a side effect is about to be made that is not on record.

        Raises NonDeterminismError where recorded calls of its node were not asked for again.
        """
        ...

    async def check_request(self, call: Call) -> None:
        """A person is about to be asked what is not on record.

        Raises NonDeterminismError where the node did not ask again what it had asked a person.
        """
        ...

    def passed_over(self, call: Call) -> Sequence[int]:
        """Return the recorded step of the same role or tool that its node did not ask for again. Each is told once."""
        ...

    def drop_parts(self, call: Call) -> None:
        """A tool's result is read back: what the tool had called itself is not asked for again."""
        ...

    @property
    def compares(self) -> bool:
        """Whether recorded calls are compared with what the graph does now, beyond their keys."""
        ...

    def compare_prompt(self, role: Role[Any, Any], inputs: Any, step: Step) -> None:
        """Compare the prompt of a recorded role call with what the role renders now. Raises where they differ."""
        ...

    def compare_report(self, report: Report, step: Step) -> None:
        """Compare a recorded report with the one that the graph delivers now. Raises where they differ."""
        ...


class CallsSinceCheckpoint:
    """What earlier claims recorded, and declared, after the checkpoint that this one starts from.

    `upgraded_at`: the step with which the run went over to this version of its graph, 0 for none. What another version
    had recorded before is read back where this one asks for the same, and is no difference where it does not.
    """

    def __init__(self, steps: Mapping[CallKey, Step], intents: Iterable[Intent] = (), *, upgraded_at: int = 0) -> None:
        self._steps = {key: step for key, step in steps.items() if key.digest or step.seq > upgraded_at}
        self._upgraded_at = upgraded_at
        self._intents = {intent.key: intent for intent in intents if intent.key not in steps}
        self._declared = set[CallKey]()
        """Calls whose side effect was declared, and that were asked for again."""
        self._told = set[int]()
        self._taken_up = asyncio.Event()

    @property
    def count(self) -> int:
        return len(self._steps)

    @property
    def is_exhausted(self) -> bool:
        return not self._steps and not self._intents

    def take(self, call: Call, expected: frozenset[str]) -> Step | None:
        if self.is_exhausted:
            return None
        if self._intents.pop(call.key, None) or self._intents.pop(old_key(call), None):
            self._declared.add(call.key)
        step = self._steps.pop(call.key, None) or self._steps.pop(old_key(call), None)
        if step is not None and step.kind not in expected:
            wanted = ", ".join(sorted(expected))
            raise NonDeterminismError(f"{call.key} recorded {step.kind}; the node now asks for {wanted}.")
        self._taken_up.set()
        self._taken_up = asyncio.Event()
        return step

    def drop_parts(self, call: Call) -> None:
        for key in parts_of(self._steps, call.key):
            del self._steps[key]

    def is_declared(self, call: Call) -> bool:
        return call.key in self._declared

    @property
    def seqs(self) -> Iterable[int]:
        return [step.seq for step in self._steps.values()]

    def check_new(self, call: Call) -> None:
        """A call that the record does not have is made."""

    async def check_effect(self, call: Call) -> None:
        await self._wait_for_neighbors(call, lambda: self._left_at(call.path))

    async def check_request(self, call: Call) -> None:
        await self._wait_for_neighbors(call, lambda: self._requests_at(call.path))

    async def _wait_for_neighbors(self, call: Call, left_over: Callable[[], list[str]]) -> None:
        """Give calls that are made side by side the time to ask for what is on record."""
        give_up = asyncio.get_running_loop().time() + GRACE_SECONDS
        while left := left_over():
            remaining = give_up - asyncio.get_running_loop().time()
            if remaining <= 0:
                raise NonDeterminismError(_difference(call, left[0]))
            try:
                async with asyncio.timeout(remaining):
                    await self._taken_up.wait()
            except TimeoutError:
                continue

    def passed_over(self, call: Call) -> Sequence[int]:
        found = [s for key, s in self._steps.items() if _place(key) == call.path and _name(s) == call.name]
        new = sorted(step.seq for step in found if step.seq not in self._told)[:1]
        self._told |= set(new)
        return new

    @property
    def compares(self) -> bool:
        return False

    def compare_prompt(self, role: Role[Any, Any], inputs: Any, step: Step) -> None:
        """What is on record holds."""

    def compare_report(self, report: Report, step: Step) -> None:
        """What is on record holds."""

    def _left_at(self, path: CallPath) -> list[str]:
        """Recorded calls and declared side effects of a node that were not asked for again, in words."""
        steps = [s for key, s in self._steps.items() if _place(key) == path and s.seq > self._upgraded_at]
        told = [f"{_asked(s)} (step {s.seq})" for s in sorted(steps, key=lambda step: step.seq)]
        intents = [i for key, i in self._intents.items() if _place(key) == path]
        return told + [f"{_request(i.name, i.args)}, which had begun" for i in intents]

    def _requests_at(self, path: CallPath) -> list[str]:
        """What a node asked a person and did not ask again, in words."""
        asked = [s for key, s in self._steps.items() if (key.superstep, key.path.partition("?")[0]) == path]
        new = [s for s in asked if s.kind is StepKind.QUESTION and s.seq > self._upgraded_at]
        requests = sorted(new, key=lambda step: step.seq)
        return [f"{s.payload['prompt']!r} {shortened(s.payload['detail'])} (step {s.seq})" for s in requests]


def old_key(call: Call) -> CallKey:
    """The key of a call of its position before digests belonged to keys."""
    _, _, nth = call.position.rpartition("/")
    return replace(call.key, ordinal=int(nth), digest="") if nth else call.key


def _place(key: CallKey) -> CallPath | None:
    """The node of a call. `None`: the step belongs to another call."""
    return None if "?" in key.path else (key.superstep, key.path)


def _name(step: Step) -> str:
    return str(step.payload.get("role") or step.payload.get("tool") or "")


def _asked(step: Step) -> str:
    """What a step records, in words."""
    if "tool" in step.payload:
        return _request(step.payload["tool"], step.payload["args"])
    return f"{_name(step) or step.kind} {shortened(step.title)!r}"


def _request(name: str, args: Any) -> str:
    return f"{name}({shortened(orjson.dumps(args, default=str, option=orjson.OPT_SORT_KEYS).decode())})"


def _difference(call: Call, recorded: str) -> str:
    now = _request(call.name, call.request[1] if len(call.request) > 1 else {})
    return (
        f"The node asks for {now}, which has an effect outside. On record for it is {recorded}, and it did not ask for "
        "that again. After a loss a node has to ask for the same again: let what it asks depend on the state and on "
        "recorded results alone, not on a clock, a random number or a function that is not journaled."
    )
