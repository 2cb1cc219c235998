"""How likely a policy finds the reference answer: where it stands in a context, and what becomes of its columns."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from offing.core.errors import InvalidInput
from offing.core.rows import TrainRow
from offing_trainer.batch import Batch, Group, batch_of
from offing_trainer.learner.reader import FolderReader
from offing_trainer.learner.settings import Settings
from offing_trainer.references import Asked, asked, columns_of
from tests.trainer.builders import CONTEXT, a_group, a_row, a_sample

LEAD, ANSWER = [901], [902, 903]


class Letters:
    """A token a letter."""

    def __init__(self, longest: int | None = None) -> None:
        self.longest = longest

    def words(self, text: str) -> list[int]:
        return [{">": 901, "x": 902, "y": 903}[letter] for letter in text]


def seen(*groups: Group) -> tuple[Batch, list[TrainRow]]:
    return batch_of(groups), [row for group in groups for sample in group.samples for row in sample.rows]


def asked_of(*groups: Group, answers: dict[str, str] | None = None, longest: int | None = None) -> tuple[Batch, Asked]:
    batch, rows = seen(*groups)
    return batch, asked(batch, rows, answers or {"t1": "xy"}, ">", Letters(longest))


def test_an_answer_follows_the_tokens_that_the_policy_went_on_from_at_each_turn() -> None:
    _, found = asked_of(a_group(a_sample(1.0, ((2, 3), (4,)))))
    first = [1] * CONTEXT
    assert [row.token_ids.tolist() for row in found.rows] == [
        [*first, *LEAD, *ANSWER],
        [*first, 10, 11, *first, *LEAD, *ANSWER],
    ], "the third turn begins a row of its own, with the same prompt as the first"
    assert found.turn.tolist() == [0, 1, 0]
    for row in found.rows:
        assert row.token_ids[row.loss_mask].tolist() == ANSWER
        assert (row.turns.temperature, len(row.turns)) == ((None,), 1)


def test_columns_hold_the_mean_after_each_turn_and_before_the_first() -> None:
    batch, found = asked_of(a_group(a_sample(1.0, ((2, 3, 1),)), a_sample(0.0, ((2,),), run=2)))
    assert len(found.rows) == 3
    columns = columns_of(batch, found, np.array([-1.0, -3.0, -0.5, -0.5, -0.1, -0.3]))
    np.testing.assert_allclose(columns["reference_start"], [-2.0, -2.0])
    np.testing.assert_allclose(columns["reference_logp"], [-0.5, -0.2, np.nan, np.nan])


def test_rollouts_of_different_tasks_are_asked_for_their_own_answers() -> None:
    one, other = a_group(a_sample()), a_group(a_sample(run=2), key="g2", task="t2")
    _, found = asked_of(one, other, answers={"t1": "x", "t2": "yy"})
    assert [row.token_ids[row.loss_mask].tolist() for row in found.rows] == [[902], [903, 903]]


def test_what_a_turn_of_context_alone_brought_counts_to_the_turn_before() -> None:
    row = a_row((2, 3, 1))
    row = replace(row, loss_mask=row.loss_mask & (row.turn_index != 1))
    sample = replace(a_sample(), rows=(row,))
    batch, found = asked_of(a_group(sample))
    assert found.turn.tolist() == [0, -1, 1]
    columns = columns_of(batch, found, np.array([-2.0, -2.0, -1.0, -1.0]))
    np.testing.assert_allclose(columns["reference_logp"], [-1.0, -1.0, np.nan])


def test_a_batch_without_a_token_has_columns_without_a_number() -> None:
    batch, found = asked_of(a_group(a_sample(1.0, ())))
    columns = columns_of(batch, found, np.empty(0))
    assert found.rows == ()
    assert np.isnan(columns["reference_start"]).tolist() == [True]
    assert columns["reference_logp"].shape == (0,)


def test_contexts_of_several_roles_and_contexts_without_room_are_refused_by_name() -> None:
    two = replace(a_sample(), rows=(a_row(), a_row(segment=1, role="verifier", first=2)))
    with pytest.raises(InvalidInput, match=r"data\.roles.*planner and verifier"):
        asked_of(a_group(two))
    assert len(asked_of(a_group(a_sample()), longest=5)[1].rows) == 1
    with pytest.raises(InvalidInput, match=r"0/0 with the reference answer has 5 tokens, and the policy reads 4"):
        asked_of(a_group(a_sample()), longest=4)


def test_an_answer_that_a_tokenizer_cannot_write_is_refused(policy_folder: Path) -> None:
    reader = FolderReader(policy_folder)
    assert len(reader.words("w1 w2")) == 2
    assert reader.longest == 32_768
    with pytest.raises(InvalidInput, match="no tokens for 'Paris'"):
        reader.words("Paris")


def test_a_learner_says_of_an_answer_what_its_own_log_probabilities_are(
    policy_folder: Path, sampled_rows: list[TrainRow]
) -> None:
    """Against a plain forward of the model, at temperature 1, whatever the turn was sampled at."""
    import torch
    from transformers import AutoModelForCausalLM

    from offing_trainer.learner.local import open_learner

    rows, reader = sampled_rows[:3], FolderReader(policy_folder)
    batch = batch_of([Group("g", "t", tuple(replace(a_sample(run=1 + n), rows=(row,)) for n, row in enumerate(rows)))])
    found = asked(batch, rows, {"t": "w3 w4 w5"}, "w1", reader)
    learner = open_learner(policy_folder, Settings(device="cpu", threads=1))
    columns = columns_of(batch, found, learner.forward(found.rows).logp)
    models: Any = AutoModelForCausalLM
    model = models.from_pretrained(policy_folder, dtype=torch.float32)
    answer = reader.words("w3 w4 w5")
    expected = list[list[float]]()
    for row in rows:
        begins = [int(np.flatnonzero(row.loss_mask & (row.turn_index == n))[0]) for n in range(len(row.turns))]
        expected.append([])
        for begin in begins:
            ids = [*row.token_ids[:begin].tolist(), *reader.words("w1"), *answer]
            with torch.no_grad():
                said = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)
            where = range(len(ids) - len(answer), len(ids))
            expected[-1].append(float(np.mean([said[at - 1, ids[at]].item() for at in where])))
    np.testing.assert_allclose(columns["reference_start"], [one[0] for one in expected], atol=1e-5)
    after = [value for one in expected for value in [*one[1:], np.nan]]
    np.testing.assert_allclose(columns["reference_logp"], after, atol=1e-5)
