"""Tokens per second of the policy engine over its socket, compared with a batched `generate` of the same weights.

Both sample the same number of tokens from the same prompts on the same number of threads, in turns.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers carries partial types.

import asyncio
import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.bench.measurement import Aim, Measurement
from tests.engine.engine_server import Served, serving

ROWS, BATCHES, PROMPT, NEW, TURNS = 32, 4, 96, 64, 5
VOCABULARY = 2048
NAME = "bench@1"

Prompts = Sequence[Sequence[int]]


def engine_speed() -> list[Measurement]:
    """Measure the engine and `generate` in turns."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from offing_engine.random_policy import create_random_policy

    threads = max(1, (os.cpu_count() or 2) - 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        create_random_policy(path, [f"w{n}" for n in range(VOCABULARY)], size="small")
        model = _bare_model(path, threads)
        with serving({NAME: path}, "--threads", str(threads)) as engine:
            pairs = [_pair(engine, model, _prompts(turn)) for turn in range(TURNS + 1)][1:]
    return [_measurement(pairs, threads)]


def _measurement(pairs: Sequence[tuple[float, float]], threads: int) -> Measurement:
    requests = f"{ROWS * BATCHES} requests of {PROMPT}+{NEW} tokens, {ROWS} concurrent"
    what = f"engine, {requests}, 1M weights, {threads} thread(s)"
    ours, bare = zip(*pairs, strict=True)
    return Measurement(what, ours, "tokens/s", bare, aim=Aim("at least 0.90", at_least=0.9, of_ratio=True))


def _pair(engine: Served, model: Any, prompts: Prompts) -> tuple[float, float]:
    return asyncio.run(_served(engine, prompts)), _bare(model, prompts)


def _prompts(seed: int) -> Prompts:
    dice = random.Random(seed)
    return [dice.choices(range(6, VOCABULARY), k=PROMPT) for _ in range(ROWS * BATCHES)]


def _bare_model(path: Path, threads: int) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(threads)
    return AutoModelForCausalLM.from_pretrained(path).eval()


def _bare(model: Any, prompts: Prompts) -> float:
    """Return the tokens per second of `generate` on full batches, without log probabilities, rows at full length."""
    import torch

    began = time.perf_counter()
    with torch.inference_mode():
        for start in range(0, len(prompts), ROWS):
            ids = torch.tensor(prompts[start : start + ROWS])
            mask = torch.ones_like(ids)
            model.generate(ids, attention_mask=mask, do_sample=True, top_k=0, max_new_tokens=NEW, min_new_tokens=NEW)
    return len(prompts) * NEW / (time.perf_counter() - began)


async def _served(engine: Served, prompts: Prompts) -> float:
    """Return the tokens per second of all requests, `ROWS` at once, with ids, log probabilities and entropies."""
    gate, began = asyncio.Semaphore(ROWS), time.perf_counter()
    transport = httpx.AsyncHTTPTransport(uds=str(engine.socket), limits=httpx.Limits(max_connections=ROWS))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=600) as client:
        drawn = await asyncio.gather(*(_complete(client, gate, n, ids) for n, ids in enumerate(prompts)))
    return sum(drawn) / (time.perf_counter() - began)


async def _complete(client: httpx.AsyncClient, gate: asyncio.Semaphore, seed: int, ids: Sequence[int]) -> int:
    body = {"model": NAME, "prompt": ids, "max_tokens": NEW, "seed": seed, "logprobs": 0, "return_token_ids": True}
    async with gate:
        response = await client.post("/v1/completions", json=body)
    return int(response.raise_for_status().json()["usage"]["completion_tokens"])
