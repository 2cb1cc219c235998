"""Answers are streamed to a listener, and a lost attempt is withdrawn from it."""

import time
from dataclasses import dataclass, field, replace

from tests.model_provider import Completion, Cut, Fault, Slow, WireServer, scripted
from tests.models.builders import GOOD, Ledger, answered, choice, litellm_engine, request


@dataclass(slots=True)
class Listener:
    """Keeps the text of each attempt."""

    events: list[str] = field(default_factory=list[str])

    async def begin_attempt(self, number: int) -> None:
        self.events.append(f"begin {number}")

    async def add_text(self, text: str) -> None:
        if self.events and self.events[-1].startswith("text "):
            self.events[-1] += text
        else:
            self.events.append(f"text {text}")

    async def end(self) -> None:
        self.events.append("end")


async def test_an_answer_is_streamed_when_someone_may_watch() -> None:
    listener = Listener()
    async with WireServer(scripted(Completion(GOOD))) as server:
        heard = replace(request(choice(server.url, timeout_seconds=60)), text_listener=listener)
        response = await answered(litellm_engine(), heard)
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert listener.events == ["begin 1", f"text {GOOD}"]
    assert (response.usage.prompt_tokens, response.usage.completion_tokens) == (11, 7)


async def test_an_answer_is_not_streamed_when_nobody_may_watch_or_when_streaming_is_off() -> None:
    listener = Listener()
    async with WireServer(scripted(Completion(GOOD), Completion(GOOD))) as server:
        unheard = await answered(litellm_engine(), request(choice(server.url, timeout_seconds=60)))
        off = request(choice(server.url, timeout_seconds=60, options={"stream": False}))
        await answered(litellm_engine(), replace(off, text_listener=listener))
    assert [body.get("stream") for body in server.bodies] == [None, None]
    assert listener.events == ["begin 1"]
    assert unheard.first_text_ms is None


async def test_an_attempt_that_breaks_off_or_is_rejected_is_withdrawn() -> None:
    listener = Listener()
    replies = (Cut(Completion(GOOD)), Fault(429), Completion('{"analysis": 3}'), Completion(GOOD))
    async with WireServer(scripted(*replies)) as server:
        heard = replace(
            request(choice(server.url, timeout_seconds=60, options={"output_mode": "text"})), text_listener=listener
        )
        await answered(litellm_engine(), heard)
    starts = [event.split(" ")[0] for event in listener.events]
    assert starts == ["begin", "text", "end", "begin", "end", "begin", "text", "end", "begin", "text"]
    assert [event for event in listener.events if event.startswith("begin")] == [f"begin {n}" for n in (1, 2, 3, 4)]
    assert listener.events[-1] == f"text {GOOD}"


async def test_the_time_to_the_first_token_is_that_of_the_accepted_attempt() -> None:
    meter = Ledger()
    async with WireServer(scripted(Slow(Completion(GOOD), 0.3))) as server:
        chosen = choice(server.url, timeout_seconds=60, options={"stream": True})
        engine = replace(litellm_engine(), clock=time.monotonic)
        response = await answered(engine, request(chosen, meter=meter))
    assert response.first_text_ms is not None
    assert 300 <= response.first_text_ms < 5000
