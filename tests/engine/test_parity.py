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

from offing_engine.batch import Batch, Completion, Work, scored
from offing_engine.kept import Kept
from offing_engine.sampling import Sampling, knobs, processed
from offing_engine.scheduler import groups
from offing_engine.weights import Policy, base_of, load_adapter, load_full
from tests.engine.adapters import adapter

CPU = torch.device("cpu")
TOLERANCE = 1e-4


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


@pytest.fixture
def policy(policies: dict[str, Path]) -> Policy:
    return load_full("words@1", policies["words@1"], CPU, 4096)


@dataclass
class Asked:
    """A request and what came of it."""

    ids: tuple[int, ...]
    most: int
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    stops: tuple[bytes, ...] = ()
    found: list[Completion] = field(default_factory=list[Completion])

    def work(self) -> Work:
        return Work(self.ids, self.most, self.sampling, self.seed, self.stops, self._done)

    def _done(self, found: Completion | BaseException) -> None:
        assert isinstance(found, Completion), found
        self.found.append(found)

    @property
    def answer(self) -> Completion:
        (only,) = self.found
        return only


def mixed(count: int, seed: int = 0) -> list[Asked]:
    """Prompts of 1 to 60 tokens, answers of 1 to 40, some truncated, some greedy."""
    dice = random.Random(seed)
    ways = [Sampling(), Sampling(), Sampling(0.7), Sampling(1.0, 0.9), Sampling(1.3, 1.0, 5), Sampling(0.0)]
    return [
        Asked(
            tuple(dice.choices(range(3, 46), k=dice.randint(1, 60))),
            dice.randint(1, 40),
            dice.choice(ways),
            dice.randrange(2**40),
        )
        for _ in range(count)
    ]


def decode(policy: Policy, asked: Sequence[Asked], joined: int, kept: Kept | None = None) -> None:
    """Runs all of `asked`, `joined` of them joining every third step."""
    batch, waiting, step = Batch(policy, kept), list(asked), 0
    while waiting or len(batch):
        if waiting and step % 3 == 0:
            works = [one.work() for one in waiting[:joined]]
            for work in works:
                batch.prepare(work)
            for group in groups(works, 10_000):
                batch.join(group)
            del waiting[:joined]
        batch.step()
        step += 1


def recomputed(model: Any, one: Asked) -> list[float]:
    """Log-probabilities of the completion by one forward over the whole sequence, without padding or cache."""
    ids = torch.tensor([one.ids + one.answer.ids])
    logits = model(input_ids=ids, use_cache=False).logits[0, len(one.ids) - 1 : -1]
    how = knobs([one.sampling] * len(one.answer.ids), CPU, logits.shape[-1])
    return processed(logits, how).gather(1, torch.tensor(one.answer.ids)[:, None])[:, 0].tolist()


def check(model: Any, asked: Sequence[Asked]) -> None:
    for one in asked:
        assert 1 <= len(one.answer.ids) <= one.most
        assert len(one.answer.ids) == len(one.answer.logprobs) == len(one.answer.entropy)
        if one.sampling.temperature:
            assert recomputed(model, one) == pytest.approx(one.answer.logprobs, abs=TOLERANCE)
        else:
            assert set(one.answer.logprobs) == {0.0}


@pytest.mark.parametrize("joined", [1, 3, 40])
def test_rows_that_join_at_different_times_have_the_log_probabilities_of_a_plain_forward(
    policy: Policy, policies: dict[str, Path], joined: int
):
    asked = mixed(40, seed=joined)
    decode(policy, asked, joined)
    check(AutoModelForCausalLM.from_pretrained(policies["words@1"]), asked)


def test_a_request_draws_the_same_tokens_whoever_shares_its_batch(policy: Policy):
    alone, together = mixed(12, seed=5), mixed(12, seed=5)
    for one in alone:
        decode(policy, [one], 1)
    decode(policy, together, 5)
    assert [one.answer.ids for one in alone] == [one.answer.ids for one in together]


def test_turns_that_go_on_from_kept_values_have_the_log_probabilities_of_a_plain_forward(
    policy: Policy, policies: dict[str, Path]
):
    dice, kept, asked = random.Random(3), Kept(10**8), mixed(20, seed=13)
    model = AutoModelForCausalLM.from_pretrained(policies["words@1"])
    for _ in range(4):
        decode(policy, asked, 7, kept)
        check(model, asked)
        asked = [
            Asked(
                one.ids + one.answer.ids + tuple(dice.choices(range(3, 46), k=dice.randint(1, 30))), 12, seed=one.seed
            )
            for one in asked
        ]
        asked += mixed(3, seed=dice.randrange(1000))
    decode(policy, asked, 9, kept)
    check(model, asked)
    assert sum(one.answer.cached > 0 for one in asked) >= 20


def test_an_end_of_turn_token_ends_a_row_and_is_part_of_it(policy: Policy):
    (end,) = policy.ends
    asked = mixed(60, seed=8)
    decode(policy, asked, 60)
    ended = [one for one in asked if one.answer.finish == "stop"]
    assert ended
    for one in asked:
        assert end not in one.answer.ids[:-1]
        assert (one.answer.ids[-1] == end) == (one.answer.finish == "stop")


def test_a_stop_string_ends_a_row_at_the_token_that_completes_it(policies: dict[str, Path]):
    policy = load_full("bytes@1", policies["bytes@1"], CPU, 4096)
    one = Asked((10, 11), 400, seed=1)
    decode(policy, [one], 1)
    text = b"".join(policy.pieces.of(one.answer.ids))
    wanted = next(text[n : n + 2] for n in range(20, len(text)) if max(text[n : n + 2]) < 128)
    other = Asked((10, 11), 400, seed=1, stops=(wanted,))
    decode(policy, [other], 1)
    assert other.answer.stop == wanted.decode()
    assert b"".join(policy.pieces.of(other.answer.ids)) == text[: text.index(wanted) + 2]


def test_a_dropped_request_leaves_and_the_others_go_on(policy: Policy, policies: dict[str, Path]):
    asked = mixed(6, seed=11)
    works = [one.work() for one in asked]
    batch = Batch(policy)
    batch.join(works)
    for work in works[::2]:
        work.dropped = True
    while len(batch):
        batch.step()
    kept = [one for one, work in zip(asked, works, strict=True) if not work.dropped]
    check(AutoModelForCausalLM.from_pretrained(policies["words@1"]), kept)


def test_scoring_gives_every_token_its_log_probability(policy: Policy, policies: dict[str, Path]):
    model = AutoModelForCausalLM.from_pretrained(policies["words@1"])
    ids = random.Random(0).choices(range(46), k=1200)
    expected = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1], -1)
    expected = expected.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()
    assert [one for one, _, _ in scored(policy, ids, Sampling())] == pytest.approx(expected, abs=TOLERANCE)


def test_a_flipped_id_is_seen_by_scoring(policy: Policy):
    asked = mixed(1, seed=21)
    decode(policy, asked, 1)
    ids = list(asked[0].ids + asked[0].answer.ids)
    ids[-1] = ids[-1] % 40 + 1
    found = scored(policy, ids, asked[0].sampling)[-1][0]
    assert abs(found - asked[0].answer.logprobs[-1]) > TOLERANCE


def test_adapters_and_their_base_answer_side_by_side(policy: Policy, policies: dict[str, Path], tmp_path: Path):
    from peft import PeftModel

    folders = [adapter(tmp_path / str(n), policies["words@1"], n) for n in (1, 2)]
    resident = {policy.name: policy}
    versions = [policy]
    for n, folder in enumerate(folders):
        base = base_of(folder, None, resident)
        versions.append(load_adapter(f"words@1.{n}", folder, base, 4096))
    asked = [mixed(12, seed=31) for _ in versions]
    batches = [Batch(version) for version in versions]
    for batch, some in zip(batches, asked, strict=True):
        batch.join([one.work() for one in some])
    while any(len(batch) for batch in batches):
        for batch in batches:
            batch.step()
    plain = [AutoModelForCausalLM.from_pretrained(policies["words@1"]) for _ in versions]
    models = [plain[0], *(PeftModel.from_pretrained(m, f) for m, f in zip(plain[1:], folders, strict=True))]
    for model, some in zip(models, asked, strict=True):
        check(model.eval(), some)
    assert len({tuple(one.answer.logprobs for one in some) for some in asked}) == 3
    assert len({version.hashes.weights for version in versions}) == 3
