"""The recorded calls of a run, as an epoch of a claim reads them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

from offing.core.errors import NonDeterminismError
from offing.core.report import Report
from offing.core.step import CallKey, Step, StepKind, shorten_line
from offing.kernel.call_key import NodeCall
from offing.kernel.call_path import CallPath
from offing.sdk import Role

GRACE_SECONDS = 5.0
"""Time for parallel calls to read their recorded steps.

After it, an unrecorded call with a side effect counts as different from the recorded calls.
"""


TOOL_RESULT_KINDS = frozenset({StepKind.TOOL_RESULT})
NOTE_KINDS = frozenset({StepKind.NOTE})
"""Step kinds as which a call may be recorded."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A declared side effect that no step records: a tool call or a child run."""

    key: CallKey
    name: str
    args: Mapping[str, Any]


ENCLOSING_CALL_KEY = "enclosing_call"
"""Payload key of a step: the call of the graph's own tool to which the step belongs, as text."""


def render_call_key(key: CallKey) -> str:
    """Return a call key as text."""
    return f"{key.superstep}/{key.path}#{key.digest}/{key.ordinal}"


def list_nested_calls(steps: Mapping[CallKey, Step], key: CallKey) -> list[CallKey]:
    """Return the keys of the calls that were made inside a tool call."""
    whole = render_call_key(key)
    return [one for one, step in steps.items() if step.payload.get(ENCLOSING_CALL_KEY) == whole]


class RecordedCalls(Protocol):
    """The interface through which the journal reads recorded results."""

    @property
    def count(self) -> int:
        """Number of recorded calls that were not read yet."""
        ...

    @property
    def is_exhausted(self) -> bool:
        """Whether a node has nothing left to read."""
        ...

    def take_step(self, call: NodeCall, expected: frozenset[str]) -> Step | None:
        """Return the recorded step of a call, once. Raises NonDeterminismError for a step of another kind."""
        ...

    def is_declared(self, call: NodeCall) -> bool:
        """Return whether an earlier claim declared the side effect of this call."""
        ...

    @property
    def unread_seqs(self) -> Iterable[int]:
        """Numbers of the recorded steps that were not read yet."""
        ...

    def check_new(self, call: NodeCall) -> None:
        """Check a call that is not recorded and is about to be made. Raises if it must not be made."""
        ...

    async def check_side_effect(self, call: NodeCall) -> None:
        """Check an unrecorded call with a side effect that is about to be made.

        Raises NonDeterminismError if its node left recorded calls unread.
        """
        ...

    async def check_input_request(self, call: NodeCall) -> None:
        """Check an unrecorded input request that is about to be made.

        Raises NonDeterminismError if the node left recorded input requests unread.
        """
        ...

    def take_skipped_seqs(self, call: NodeCall) -> Sequence[int]:
        """Return the recorded step of the same role or tool that the node did not request.

        Each step is returned once.
        """
        ...

    def drop_nested_calls(self, call: NodeCall) -> None:
        """Drop the calls that were made inside a tool call, because the result of the tool is read back."""
        ...

    @property
    def is_comparing(self) -> bool:
        """Whether recorded calls are compared with the current ones beyond their keys."""
        ...

    def compare_prompt(self, role: Role[Any, Any], inputs: Any, step: Step) -> None:
        """Compare the recorded prompt of a role call with the current one. Raises if they differ."""
        ...

    def compare_report(self, report: Report, step: Step) -> None:
        """Compare a recorded report with the one that the graph submits now. Raises if they differ."""
        ...


class CallsSinceCheckpoint:
    """Steps and intents that earlier claims recorded after the checkpoint where this claim starts.

    `upgraded_at` is the step at which the run changed to this version of its graph, or 0. Steps of an
    earlier version are read back if this version requests the same. If it does not, this is not an
    error.
    """

    def __init__(self, steps: Mapping[CallKey, Step], intents: Iterable[Intent] = (), *, upgraded_at: int = 0) -> None:
        self._steps = {key: step for key, step in steps.items() if key.digest or step.seq > upgraded_at}
        self._upgraded_at = upgraded_at
        self._intents = {intent.key: intent for intent in intents if intent.key not in steps}
        self._declared = set[CallKey]()
        """Calls with a declared side effect that were requested again."""
        self._reported_seqs = set[int]()
        self._step_taken = asyncio.Event()

    @property
    def count(self) -> int:
        return len(self._steps)

    @property
    def is_exhausted(self) -> bool:
        return not self._steps and not self._intents

    def take_step(self, call: NodeCall, expected: frozenset[str]) -> Step | None:
        if self.is_exhausted:
            return None
        if self._intents.pop(call.key, None) or self._intents.pop(build_legacy_key(call), None):
            self._declared.add(call.key)
        step = self._steps.pop(call.key, None) or self._steps.pop(build_legacy_key(call), None)
        if step is not None and step.kind not in expected:
            expected_kinds = ", ".join(sorted(expected))
            raise NonDeterminismError(
                f"{call.key} was recorded as {step.kind}, but the node now requests {expected_kinds}."
            )
        self._step_taken.set()
        self._step_taken = asyncio.Event()
        return step

    def drop_nested_calls(self, call: NodeCall) -> None:
        for key in list_nested_calls(self._steps, call.key):
            del self._steps[key]

    def is_declared(self, call: NodeCall) -> bool:
        return call.key in self._declared

    @property
    def unread_seqs(self) -> Iterable[int]:
        return [step.seq for step in self._steps.values()]

    def check_new(self, call: NodeCall) -> None:
        """Allow every call that is not recorded."""

    async def check_side_effect(self, call: NodeCall) -> None:
        await self._wait_for_parallel_calls(call, lambda: self._describe_unread_calls(call.call_path))

    async def check_input_request(self, call: NodeCall) -> None:
        await self._wait_for_parallel_calls(call, lambda: self._describe_unread_requests(call.call_path))

    async def _wait_for_parallel_calls(self, call: NodeCall, list_unread: Callable[[], list[str]]) -> None:
        """Give parallel calls time to read their recorded steps."""
        give_up = asyncio.get_running_loop().time() + GRACE_SECONDS
        while unread := list_unread():
            remaining = give_up - asyncio.get_running_loop().time()
            if remaining <= 0:
                raise NonDeterminismError(_render_mismatch(call, unread[0]))
            try:
                async with asyncio.timeout(remaining):
                    await self._step_taken.wait()
            except TimeoutError:
                continue

    def take_skipped_seqs(self, call: NodeCall) -> Sequence[int]:
        skipped = [
            s for key, s in self._steps.items() if _path_of_key(key) == call.call_path and _callee_name(s) == call.name
        ]
        new = sorted(step.seq for step in skipped if step.seq not in self._reported_seqs)[:1]
        self._reported_seqs |= set(new)
        return new

    @property
    def is_comparing(self) -> bool:
        return False

    def compare_prompt(self, role: Role[Any, Any], inputs: Any, step: Step) -> None:
        """Accept the recorded report."""

    def compare_report(self, report: Report, step: Step) -> None:
        """Accept the recorded report."""

    def _describe_unread_calls(self, path: CallPath) -> list[str]:
        """Describe recorded calls and declared side effects of a node that were not requested again."""
        steps = [s for key, s in self._steps.items() if _path_of_key(key) == path and s.seq > self._upgraded_at]
        descriptions = [f"{_describe_step(s)} (step {s.seq})" for s in sorted(steps, key=lambda step: step.seq)]
        intents = [i for key, i in self._intents.items() if _path_of_key(key) == path]
        return descriptions + [f"{_render_call(i.name, i.args)}, which had begun" for i in intents]

    def _describe_unread_requests(self, path: CallPath) -> list[str]:
        """Describe recorded input requests of a node that were not requested again."""
        unread = [s for key, s in self._steps.items() if (key.superstep, key.path.partition("?")[0]) == path]
        new = [s for s in unread if s.kind is StepKind.INPUT_REQUEST and s.seq > self._upgraded_at]
        requests = sorted(new, key=lambda step: step.seq)
        return [f"{s.payload['prompt']!r} {shorten_line(s.payload['detail'])} (step {s.seq})" for s in requests]


def build_legacy_key(call: NodeCall) -> CallKey:
    """Return the legacy key of a call, from before keys contained digests."""
    _, _, nth = call.position.rpartition("/")
    return replace(call.key, ordinal=int(nth), digest="") if nth else call.key


def _path_of_key(key: CallKey) -> CallPath | None:
    """Return the call path of a key. `None` means that the step belongs to another call."""
    return None if "?" in key.path else (key.superstep, key.path)


def _callee_name(step: Step) -> str:
    return str(step.payload.get("role") or step.payload.get("tool") or "")


def _describe_step(step: Step) -> str:
    """Describe the recorded call of a step."""
    if "tool" in step.payload:
        return _render_call(step.payload["tool"], step.payload["args"])
    return f"{_callee_name(step) or step.kind} {shorten_line(step.title)!r}"


def _render_call(name: str, args: Any) -> str:
    return f"{name}({shorten_line(orjson.dumps(args, default=str, option=orjson.OPT_SORT_KEYS).decode())})"


def _render_mismatch(call: NodeCall, recorded: str) -> str:
    now = _render_call(call.name, call.request[1] if len(call.request) > 1 else {})
    return (
        f"The node requests {now}, which has side effects. Instead, {recorded} is recorded, which the "
        "node did not request again. A node that runs again after a crash must make the same calls. They "
        "may depend only on the state and on recorded results, not on a clock, a random number or a "
        "function that is not journaled."
    )
