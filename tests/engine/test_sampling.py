"""The distribution that tokens are drawn from."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offing_engine.sampling import Sampling, drawn, entropy, knobs, processed, uniforms

CPU = torch.device("cpu")


def logprobs_of(logits: list[float], sampling: Sampling) -> list[float]:
    return processed(torch.tensor([logits]), knobs([sampling], CPU, len(logits)))[0].tolist()


def probabilities(logits: list[float], sampling: Sampling) -> list[float]:
    return [math.exp(one) for one in logprobs_of(logits, sampling)]


def test_plain_sampling_is_the_softmax_of_the_logits():
    assert probabilities([0.0, math.log(3)], Sampling()) == pytest.approx([0.25, 0.75])


def test_temperature_divides_the_logits():
    assert probabilities([0.0, math.log(9)], Sampling(temperature=2.0)) == pytest.approx([0.25, 0.75])


def test_top_k_keeps_the_likeliest_and_renormalises():
    found = probabilities([math.log(5), math.log(3), math.log(2)], Sampling(top_k=2))
    assert found == pytest.approx([5 / 8, 3 / 8, 0])


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    logits = [math.log(0.5), math.log(0.3), math.log(0.2)]
    assert probabilities(logits, Sampling(top_p=0.6)) == pytest.approx([5 / 8, 3 / 8, 0])
    assert probabilities(logits, Sampling(top_p=0.4)) == pytest.approx([1, 0, 0])


def test_temperature_nought_is_a_point_on_the_likeliest_token():
    assert logprobs_of([1.0, 3.0, 2.0], Sampling(temperature=0.0)) == [-math.inf, 0.0, -math.inf]


def test_rows_of_different_sampling_do_not_mix():
    rows = [Sampling(), Sampling(temperature=0.5), Sampling(top_k=1), Sampling(temperature=0.0), Sampling(top_p=0.5)]
    logits = torch.randn(len(rows), 30, generator=torch.Generator().manual_seed(0))
    together = processed(logits, knobs(rows, CPU, 30))
    for n, row in enumerate(rows):
        alone = processed(logits[n : n + 1], knobs([row], CPU, 30))[0]
        assert torch.equal(together[n], alone)


def test_entropy_is_that_of_the_truncated_distribution():
    found = processed(torch.tensor([[1.0, 1.0, 0.0]]), knobs([Sampling(top_k=2)], CPU, 3))
    assert entropy(found).tolist() == pytest.approx([math.log(2)])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-30, 30), min_size=2, max_size=40),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from([Sampling(), Sampling(top_k=2), Sampling(top_p=0.3), Sampling(temperature=0.0)]),
)
def test_what_is_drawn_could_be_drawn(logits: list[float], uniform: float, sampling: Sampling):
    found = processed(torch.tensor([logits]), knobs([sampling], CPU, len(logits)))
    id = int(drawn(found, torch.tensor([uniform], dtype=torch.float64)))
    assert math.isfinite(found[0, id].item())


def test_draws_follow_the_distribution():
    logprobs = torch.tensor([[0.1, 0.2, 0.7]]).log().expand(20_000, 3)
    counts = torch.bincount(drawn(logprobs, uniforms(5, 20_000)), minlength=3) / 20_000
    assert counts.tolist() == pytest.approx([0.1, 0.2, 0.7], abs=0.015)


def test_a_longer_answer_begins_with_the_same_uniform_numbers():
    for short in (1, 7, 16, 100):
        assert torch.equal(uniforms(9, short), uniforms(9, 1000)[:short])
