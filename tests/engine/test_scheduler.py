"""Who joins when, who leaves, and what happens to what goes wrong."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
import dataclasses
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch

from offing.core.errors import Conflict, NotFound
from offing_engine import handlers, weights
from offing_engine.app import EngineApp
from offing_engine.batch import Completion, GenerationRequest
from offing_engine.protocol import CompletionRequest
from offing_engine.sampling import SamplingParams
from offing_engine.scheduler import EngineScheduler, SchedulerLimits, group_requests

CPU = torch.device("cpu")


@pytest.fixture
def engine(policies: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Generator[EngineScheduler]:
    """An engine whose policy never ends a turn by itself, with room for four rows."""
    load = weights.load_full_policy

    def endless(*inputs: Any) -> weights.LoadedPolicy:
        return dataclasses.replace(load(*inputs), end_ids=frozenset())

    monkeypatch.setattr(weights, "load_full_policy", endless)
    engine = EngineScheduler(CPU, SchedulerLimits(max_rows=4, max_waiting=20))
    engine.load("words@1", policies["words@1"])
    yield engine
    engine.stop()


def completion_request(maximum: int, seed: int = 0) -> CompletionRequest:
    return CompletionRequest(model="words@1", prompt=[7, 8, 9], max_tokens=maximum, seed=seed)


async def until_idle(engine: EngineScheduler) -> None:
    await _until(lambda: not engine.request_count)


async def test_more_requests_than_rows_all_get_their_answer(engine: EngineScheduler):
    results = await asyncio.gather(
        *(handlers.create_completion(engine, completion_request(5 + n, n)) for n in range(10))
    )
    assert [len(answer["choices"][0]["token_entropy"]) for answer in results] == [5 + n for n in range(10)]


async def test_one_set_of_weights_is_opened_at_a_time(
    engine: EngineScheduler, policies: dict[str, Path], monkeypatch: pytest.MonkeyPatch
):
    load, opening, maximum = weights.load_full_policy, list[str](), list[int]()

    def counted(name: str, *inputs: Any) -> weights.LoadedPolicy:
        opening.append(name)
        maximum.append(len(opening))
        time.sleep(0.05)
        try:
            return load(name, *inputs)
        finally:
            opening.remove(name)

    monkeypatch.setattr(weights, "load_full_policy", counted)
    names = ("words@2", "words@2", "words@3")
    results = await asyncio.gather(*(asyncio.to_thread(engine.load, n, policies["words@2"]) for n in names))
    assert [policy.name for policy in results] == list(names)
    assert maximum == [1, 1], "the same weights under the same name are not opened again"


async def test_too_many_waiting_requests_are_rejected(engine: EngineScheduler):
    many = await asyncio.gather(*(_post(EngineApp(engine, None), completion_request(40, n)) for n in range(60)))
    assert set(many) == {200, 503}
    assert many.count(200) >= 20


async def test_a_short_answer_does_not_wait_for_a_long_one(engine: EngineScheduler):
    long = asyncio.create_task(handlers.create_completion(engine, completion_request(20_000)))
    await handlers.create_completion(engine, completion_request(5))
    assert not long.done()
    long.cancel()
    await until_idle(engine)


async def test_a_caller_that_hangs_up_frees_its_row(engine: EngineScheduler):
    assert await _post(EngineApp(engine, None), completion_request(30_000), hang_up_after=0.2) is None
    await until_idle(engine)
    assert len((await handlers.create_completion(engine, completion_request(3)))["choices"][0]["token_entropy"]) == 3


async def test_a_version_that_is_unloaded_finishes_what_it_has(engine: EngineScheduler):
    task = asyncio.create_task(handlers.create_completion(engine, completion_request(2000)))
    await _until(lambda: engine.request_count > 0)
    engine.unload("words@1")
    with pytest.raises(NotFound):
        await handlers.create_completion(engine, completion_request(3))
    assert len((await task)["choices"][0]["token_entropy"]) == 2000


async def test_a_failing_round_ends_its_requests_and_not_the_engine(
    engine: EngineScheduler, monkeypatch: pytest.MonkeyPatch
):
    network = engine.get_policy("words@1").network
    with monkeypatch.context() as broken:
        broken.setattr(network, "model", None)
        assert await _post(EngineApp(engine, None), completion_request(3)) == 500
    assert await _post(EngineApp(engine, None), completion_request(3)) == 200


def test_the_base_of_a_resident_adapter_stays(engine: EngineScheduler, policies: dict[str, Path]):
    base = engine.get_policy("words@1")
    above = dataclasses.replace(base, name="words@2", adapter="two")
    engine._run_on_thread(lambda: engine._add_resident("words@2", lambda: above))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(Conflict, match="words@2"):
        engine.unload("words@1")


def test_prompts_are_read_together_when_their_lengths_are_near():
    works = [GenerationRequest((0,) * n, 1, SamplingParams(), 0, (), _ignore) for n in (3, 900, 4, 1000, 5)]
    results = [[len(work.ids) for work in group] for group in group_requests(works, 1500)]
    assert results == [[3, 4, 5], [900], [1000]]


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  what is waited for happens on another thread
            await asyncio.sleep(0.005)


def _ignore(_: Completion | BaseException) -> None: ...


async def _post(app: EngineApp, request: CompletionRequest, hang_up_after: float | None = None) -> int | None:
    """The status of a request to the application. None: nothing was sent."""
    sent: list[dict[str, Any]] = []
    body = orjson.dumps(request.model_dump(exclude_none=True))
    messages = iter([{"type": "http.request", "body": body}])

    async def receive() -> Mapping[str, Any]:
        if (message := next(messages, None)) is not None:
            return message
        await asyncio.sleep(3600 if hang_up_after is None else hang_up_after)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": "/v1/completions", "headers": []}, receive, send)
    return sent[0]["status"] if sent else None
