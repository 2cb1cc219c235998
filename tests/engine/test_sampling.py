"""The distribution that tokens are drawn from."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offing_engine.sampling import (
    SamplingParams,
    build_sampling_tensors,
    compute_entropy,
    compute_logprobs,
    draw_uniforms,
    sample_tokens,
)

CPU = torch.device("cpu")


def logprobs_of(logits: list[float], sampling: SamplingParams) -> list[float]:
    return compute_logprobs(torch.tensor([logits]), build_sampling_tensors([sampling], CPU, len(logits)))[0].tolist()


def probabilities(logits: list[float], sampling: SamplingParams) -> list[float]:
    return [math.exp(one) for one in logprobs_of(logits, sampling)]


def test_plain_sampling_is_the_softmax_of_the_logits():
    assert probabilities([0.0, math.log(3)], SamplingParams()) == pytest.approx([0.25, 0.75])


def test_temperature_divides_the_logits():
    assert probabilities([0.0, math.log(9)], SamplingParams(temperature=2.0)) == pytest.approx([0.25, 0.75])


def test_top_k_keeps_the_likeliest_and_renormalises():
    result = probabilities([math.log(5), math.log(3), math.log(2)], SamplingParams(top_k=2))
    assert result == pytest.approx([5 / 8, 3 / 8, 0])


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    logits = [math.log(0.5), math.log(0.3), math.log(0.2)]
    assert probabilities(logits, SamplingParams(top_p=0.6)) == pytest.approx([5 / 8, 3 / 8, 0])
    assert probabilities(logits, SamplingParams(top_p=0.4)) == pytest.approx([1, 0, 0])


def test_temperature_nought_is_a_point_on_the_likeliest_token():
    assert logprobs_of([1.0, 3.0, 2.0], SamplingParams(temperature=0.0)) == [-math.inf, 0.0, -math.inf]


def test_rows_of_different_sampling_do_not_mix():
    rows = [
        SamplingParams(),
        SamplingParams(temperature=0.5),
        SamplingParams(top_k=1),
        SamplingParams(temperature=0.0),
        SamplingParams(top_p=0.5),
    ]
    logits = torch.randn(len(rows), 30, generator=torch.Generator().manual_seed(0))
    together = compute_logprobs(logits, build_sampling_tensors(rows, CPU, 30))
    for n, row in enumerate(rows):
        alone = compute_logprobs(logits[n : n + 1], build_sampling_tensors([row], CPU, 30))[0]
        assert torch.equal(together[n], alone)


def test_entropy_is_that_of_the_truncated_distribution():
    logprobs = compute_logprobs(
        torch.tensor([[1.0, 1.0, 0.0]]), build_sampling_tensors([SamplingParams(top_k=2)], CPU, 3)
    )
    assert compute_entropy(logprobs).tolist() == pytest.approx([math.log(2)])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-30, 30), min_size=2, max_size=40),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(
        [SamplingParams(), SamplingParams(top_k=2), SamplingParams(top_p=0.3), SamplingParams(temperature=0.0)]
    ),
)
def test_what_is_drawn_could_be_drawn(logits: list[float], uniform: float, sampling: SamplingParams):
    logprobs = compute_logprobs(torch.tensor([logits]), build_sampling_tensors([sampling], CPU, len(logits)))
    id = int(sample_tokens(logprobs, torch.tensor([uniform], dtype=torch.float64)))
    assert math.isfinite(logprobs[0, id].item())


def test_draws_follow_the_distribution():
    logprobs = torch.tensor([[0.1, 0.2, 0.7]]).log().expand(20_000, 3)
    counts = torch.bincount(sample_tokens(logprobs, draw_uniforms(5, 20_000)), minlength=3) / 20_000
    assert counts.tolist() == pytest.approx([0.1, 0.2, 0.7], abs=0.015)


def test_a_longer_answer_begins_with_the_same_uniform_numbers():
    for short in (1, 7, 16, 100):
        assert torch.equal(draw_uniforms(9, short), draw_uniforms(9, 1000)[:short])
