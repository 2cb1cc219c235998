"""Stored log-probabilities are those of a plain forward over one sequence, however requests shared their batches."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from offing_engine.batch import Completion, DecodeBatch, GenerationRequest, score_tokens
from offing_engine.prefix_cache import PrefixCache
from offing_engine.sampling import SamplingParams, build_sampling_tensors, compute_logprobs
from offing_engine.scheduler import group_requests
from offing_engine.weights import LoadedPolicy, load_adapter_policy, load_full_policy, resolve_base
from tests.engine.adapters import adapter

CPU = torch.device("cpu")
TOLERANCE = 1e-4


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


@pytest.fixture
def policy(policies: dict[str, Path]) -> LoadedPolicy:
    return load_full_policy("words@1", policies["words@1"], CPU, 4096)


@dataclass
class ComparedRequest:
    """A request and the result."""

    ids: tuple[int, ...]
    most: int
    sampling: SamplingParams = field(default_factory=SamplingParams)
    seed: int = 0
    stops: tuple[bytes, ...] = ()
    completions: list[Completion] = field(default_factory=list[Completion])

    def work(self) -> GenerationRequest:
        return GenerationRequest(self.ids, self.most, self.sampling, self.seed, self.stops, self._done)

    def _done(self, result: Completion | BaseException) -> None:
        assert isinstance(result, Completion), result
        self.completions.append(result)

    @property
    def answer(self) -> Completion:
        (only,) = self.completions
        return only


def mixed(count: int, seed: int = 0) -> list[ComparedRequest]:
    """Prompts of 1 to 60 tokens, answers of 1 to 40, some truncated, some greedy."""
    dice = random.Random(seed)
    ways = [
        SamplingParams(),
        SamplingParams(),
        SamplingParams(0.7),
        SamplingParams(1.0, 0.9),
        SamplingParams(1.3, 1.0, 5),
        SamplingParams(0.0),
    ]
    return [
        ComparedRequest(
            tuple(dice.choices(range(3, 46), k=dice.randint(1, 60))),
            dice.randint(1, 40),
            dice.choice(ways),
            dice.randrange(2**40),
        )
        for _ in range(count)
    ]


def decode(
    policy: LoadedPolicy, requests: Sequence[ComparedRequest], joined: int, stored: PrefixCache | None = None
) -> None:
    """Runs all of `asked`, `joined` of them joining every third step."""
    batch, waiting, step = DecodeBatch(policy, stored), list(requests), 0
    while waiting or len(batch):
        if waiting and step % 3 == 0:
            works = [one.work() for one in waiting[:joined]]
            for work in works:
                batch.look_up_prefix(work)
            for group in group_requests(works, 10_000):
                batch.add(group)
            del waiting[:joined]
        batch.decode_step()
        step += 1


def recomputed(model: Any, one: ComparedRequest) -> list[float]:
    """Log-probabilities of the completion by one forward over the whole sequence, without padding or cache."""
    ids = torch.tensor([one.ids + one.answer.ids])
    logits = model(input_ids=ids, use_cache=False).logits[0, len(one.ids) - 1 : -1]
    how = build_sampling_tensors([one.sampling] * len(one.answer.ids), CPU, logits.shape[-1])
    return compute_logprobs(logits, how).gather(1, torch.tensor(one.answer.ids)[:, None])[:, 0].tolist()


def check(model: Any, requests: Sequence[ComparedRequest]) -> None:
    for one in requests:
        assert 1 <= len(one.answer.ids) <= one.most
        assert len(one.answer.ids) == len(one.answer.logprobs) == len(one.answer.entropies)
        if one.sampling.temperature:
            assert recomputed(model, one) == pytest.approx(one.answer.logprobs, abs=TOLERANCE)
        else:
            assert set(one.answer.logprobs) == {0.0}


@pytest.mark.parametrize("joined", [1, 3, 40])
def test_rows_that_join_at_different_times_have_the_log_probabilities_of_a_plain_forward(
    policy: LoadedPolicy, policies: dict[str, Path], joined: int
):
    requests = mixed(40, seed=joined)
    decode(policy, requests, joined)
    check(AutoModelForCausalLM.from_pretrained(policies["words@1"]), requests)


def test_a_request_draws_the_same_tokens_in_any_batch(policy: LoadedPolicy):
    alone, together = mixed(12, seed=5), mixed(12, seed=5)
    for one in alone:
        decode(policy, [one], 1)
    decode(policy, together, 5)
    assert [one.answer.ids for one in alone] == [one.answer.ids for one in together]


def test_turns_that_continue_from_kept_values_have_the_log_probabilities_of_a_plain_forward(
    policy: LoadedPolicy, policies: dict[str, Path]
):
    dice, stored, requests = random.Random(3), PrefixCache(10**8), mixed(20, seed=13)
    model = AutoModelForCausalLM.from_pretrained(policies["words@1"])
    for _ in range(4):
        decode(policy, requests, 7, stored)
        check(model, requests)
        requests = [
            ComparedRequest(
                one.ids + one.answer.ids + tuple(dice.choices(range(3, 46), k=dice.randint(1, 30))), 12, seed=one.seed
            )
            for one in requests
        ]
        requests += mixed(3, seed=dice.randrange(1000))
    decode(policy, requests, 9, stored)
    check(model, requests)
    assert sum(one.answer.cached_tokens > 0 for one in requests) >= 20


def test_an_end_of_turn_token_ends_a_row_and_is_part_of_it(policy: LoadedPolicy):
    (end,) = policy.end_ids
    requests = mixed(60, seed=8)
    decode(policy, requests, 60)
    ended = [one for one in requests if one.answer.finish_reason == "stop"]
    assert ended
    for one in requests:
        assert end not in one.answer.ids[:-1]
        assert (one.answer.ids[-1] == end) == (one.answer.finish_reason == "stop")


def test_a_stop_string_ends_a_row_at_the_token_that_completes_it(policies: dict[str, Path]):
    policy = load_full_policy("bytes@1", policies["bytes@1"], CPU, 4096)
    one = ComparedRequest((10, 11), 400, seed=1)
    decode(policy, [one], 1)
    text = b"".join(policy.token_decoder.decode_each(one.answer.ids))
    expected = next(text[n : n + 2] for n in range(20, len(text)) if max(text[n : n + 2]) < 128)
    other = ComparedRequest((10, 11), 400, seed=1, stops=(expected,))
    decode(policy, [other], 1)
    assert other.answer.stop_string == expected.decode()
    assert b"".join(policy.token_decoder.decode_each(other.answer.ids)) == text[: text.index(expected) + 2]


def test_a_dropped_request_leaves_and_the_others_continue(policy: LoadedPolicy, policies: dict[str, Path]):
    requests = mixed(6, seed=11)
    works = [one.work() for one in requests]
    batch = DecodeBatch(policy)
    batch.add(works)
    for work in works[::2]:
        work.cancelled = True
    while len(batch):
        batch.decode_step()
    stored = [one for one, work in zip(requests, works, strict=True) if not work.cancelled]
    check(AutoModelForCausalLM.from_pretrained(policies["words@1"]), stored)


def test_scoring_gives_every_token_its_log_probability(policy: LoadedPolicy, policies: dict[str, Path]):
    model = AutoModelForCausalLM.from_pretrained(policies["words@1"])
    ids = random.Random(0).choices(range(46), k=1200)
    expected = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1], -1)
    expected = expected.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()
    assert [one for one, _, _ in score_tokens(policy, ids, SamplingParams())] == pytest.approx(expected, abs=TOLERANCE)


def test_a_flipped_id_is_seen_by_scoring(policy: LoadedPolicy):
    requests = mixed(1, seed=21)
    decode(policy, requests, 1)
    ids = list(requests[0].ids + requests[0].answer.ids)
    ids[-1] = ids[-1] % 40 + 1
    result = score_tokens(policy, ids, requests[0].sampling)[-1][0]
    assert abs(result - requests[0].answer.logprobs[-1]) > TOLERANCE


def test_adapters_and_their_base_answer_side_by_side(policy: LoadedPolicy, policies: dict[str, Path], tmp_path: Path):
    from peft import PeftModel

    folders = [adapter(tmp_path / str(n), policies["words@1"], n) for n in (1, 2)]
    resident = {policy.name: policy}
    versions = [policy]
    for n, folder in enumerate(folders):
        base = resolve_base(folder, None, resident)
        versions.append(load_adapter_policy(f"words@1.{n}", folder, base, 4096))
    requests = [mixed(12, seed=31) for _ in versions]
    batches = [DecodeBatch(version) for version in versions]
    for batch, some in zip(batches, requests, strict=True):
        batch.add([one.work() for one in some])
    while any(len(batch) for batch in batches):
        for batch in batches:
            batch.decode_step()
    plain = [AutoModelForCausalLM.from_pretrained(policies["words@1"]) for _ in versions]
    models = [plain[0], *(PeftModel.from_pretrained(m, f) for m, f in zip(plain[1:], folders, strict=True))]
    for model, some in zip(models, requests, strict=True):
        check(model.eval(), some)
    assert len({tuple(one.answer.logprobs for one in some) for some in requests}) == 3
    assert len({version.hashes.weights for version in versions}) == 3
