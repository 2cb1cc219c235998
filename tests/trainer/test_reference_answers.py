"""How likely a policy finds the reference answer: where it stands in a context, and what becomes of its columns."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from offing.core.errors import InvalidInput
from offing.core.training_rows import TrainingRow
from offing_trainer.batch import RolloutGroup, TrainingBatch, build_training_batch
from offing_trainer.learner.settings import LearnerSettings
from offing_trainer.learner.template_tokenizer import TemplateTokenizer
from offing_trainer.reference_answers import ReferenceRows, build_reference_rows, compute_answer_columns
from tests.trainer.builders import CONTEXT, a_group, a_row, a_sample

LEAD, ANSWER = [901], [902, 903]


class LetterTokenizer:
    """A token a letter."""

    def __init__(self, max_tokens: int | None = None) -> None:
        self.max_tokens = max_tokens

    def encode_text(self, text: str) -> list[int]:
        return [{">": 901, "x": 902, "y": 903}[letter] for letter in text]


def seen(*groups: RolloutGroup) -> tuple[TrainingBatch, list[TrainingRow]]:
    return build_training_batch(groups), [row for group in groups for sample in group.rollouts for row in sample.rows]


def requested_rows(
    *groups: RolloutGroup, answers: dict[str, str] | None = None, max_tokens: int | None = None
) -> tuple[TrainingBatch, ReferenceRows]:
    batch, rows = seen(*groups)
    return batch, build_reference_rows(batch, rows, answers or {"t1": "xy"}, ">", LetterTokenizer(max_tokens))


def test_an_answer_follows_the_tokens_that_the_policy_continued_from_at_each_turn() -> None:
    _, result = requested_rows(a_group(a_sample(1.0, ((2, 3), (4,)))))
    first = [1] * CONTEXT
    assert [row.token_ids.tolist() for row in result.rows] == [
        [*first, *LEAD, *ANSWER],
        [*first, 10, 11, *first, *LEAD, *ANSWER],
    ], "the third turn begins a row of its own, with the same prompt as the first"
    assert result.turn_row.tolist() == [0, 1, 0]
    for row in result.rows:
        assert row.token_ids[row.loss_mask].tolist() == ANSWER
        assert (row.turns.temperature, len(row.turns)) == ((None,), 1)


def test_columns_hold_the_mean_after_each_turn_and_before_the_first() -> None:
    batch, result = requested_rows(a_group(a_sample(1.0, ((2, 3, 1),)), a_sample(0.0, ((2,),), run=2)))
    assert len(result.rows) == 3
    columns = compute_answer_columns(batch, result, np.array([-1.0, -3.0, -0.5, -0.5, -0.1, -0.3]))
    np.testing.assert_allclose(columns["initial_answer_logprob"], [-2.0, -2.0])
    np.testing.assert_allclose(columns["answer_logprob"], [-0.5, -0.2, np.nan, np.nan])


def test_rollouts_of_different_tasks_are_asked_for_their_own_answers() -> None:
    one, other = a_group(a_sample()), a_group(a_sample(run=2), key="g2", task="t2")
    _, result = requested_rows(one, other, answers={"t1": "x", "t2": "yy"})
    assert [row.token_ids[row.loss_mask].tolist() for row in result.rows] == [[902], [903, 903]]


def test_what_a_turn_of_context_alone_brought_counts_to_the_turn_before() -> None:
    row = a_row((2, 3, 1))
    row = replace(row, loss_mask=row.loss_mask & (row.turn_index != 1))
    sample = replace(a_sample(), rows=(row,))
    batch, result = requested_rows(a_group(sample))
    assert result.turn_row.tolist() == [0, -1, 1]
    columns = compute_answer_columns(batch, result, np.array([-2.0, -2.0, -1.0, -1.0]))
    np.testing.assert_allclose(columns["answer_logprob"], [-1.0, -1.0, np.nan])


def test_a_batch_without_a_token_has_columns_without_a_number() -> None:
    batch, result = requested_rows(a_group(a_sample(1.0, ())))
    columns = compute_answer_columns(batch, result, np.empty(0))
    assert result.rows == ()
    assert np.isnan(columns["initial_answer_logprob"]).tolist() == [True]
    assert columns["answer_logprob"].shape == (0,)


def test_contexts_of_several_roles_and_full_contexts_are_rejected_by_name() -> None:
    two = replace(a_sample(), rows=(a_row(), a_row(segment=1, role="verifier", first=2)))
    with pytest.raises(InvalidInput, match=r"data\.roles.*planner and verifier"):
        requested_rows(a_group(two))
    assert len(requested_rows(a_group(a_sample()), max_tokens=5)[1].rows) == 1
    with pytest.raises(
        InvalidInput, match=r"0/0 with the reference answer has 5 tokens, but the policy's maximum is 4"
    ):
        requested_rows(a_group(a_sample()), max_tokens=4)


def test_an_answer_that_a_tokenizer_cannot_write_is_rejected(policy_folder: Path) -> None:
    reader = TemplateTokenizer(policy_folder)
    assert len(reader.encode_text("w1 w2")) == 2
    assert reader.max_tokens == 32_768
    with pytest.raises(InvalidInput, match="no tokens for 'Paris'"):
        reader.encode_text("Paris")


def test_a_learner_says_of_an_answer_what_its_own_log_probabilities_are(
    policy_folder: Path, sampled_rows: list[TrainingRow]
) -> None:
    """Against a plain forward of the model, at temperature 1, whatever the turn was sampled at."""
    import torch
    from transformers import AutoModelForCausalLM

    from offing_trainer.learner.local_learner import open_learner

    rows, reader = sampled_rows[:3], TemplateTokenizer(policy_folder)
    batch = build_training_batch(
        [RolloutGroup("g", "t", tuple(replace(a_sample(run=1 + n), rows=(row,)) for n, row in enumerate(rows)))]
    )
    reference_rows = build_reference_rows(batch, rows, {"t": "w3 w4 w5"}, "w1", reader)
    learner = open_learner(policy_folder, LearnerSettings(device="cpu", cpu_threads=1))
    columns = compute_answer_columns(batch, reference_rows, learner.forward(reference_rows.rows).logprobs)
    models: Any = AutoModelForCausalLM
    model = models.from_pretrained(policy_folder, dtype=torch.float32)
    answer = reader.encode_text("w3 w4 w5")
    expected = list[list[float]]()
    for row in rows:
        begins = [int(np.flatnonzero(row.loss_mask & (row.turn_index == n))[0]) for n in range(len(row.turns))]
        expected.append([])
        for begin in begins:
            ids = [*row.token_ids[:begin].tolist(), *reader.encode_text("w1"), *answer]
            with torch.no_grad():
                text = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)
            where = range(len(ids) - len(answer), len(ids))
            expected[-1].append(float(np.mean([text[at - 1, ids[at]].item() for at in where])))
    np.testing.assert_allclose(columns["initial_answer_logprob"], [one[0] for one in expected], atol=1e-5)
    after = [value for one in expected for value in [*one[1:], np.nan]]
    np.testing.assert_allclose(columns["answer_logprob"], after, atol=1e-5)
