"""Token ids as the pieces of text that the page and the command line show."""

from pathlib import Path

from tokenizers import Tokenizer

from offing.services import token_texts
from offing_engine.random_policy import create_random_policy


def test_a_word_of_a_small_planner_keeps_the_space_in_front_of_it(tmp_path: Path) -> None:
    create_random_policy(tmp_path / "p@1", ["t5", "r1", "e0"])
    tokenizer = Tokenizer.from_file(str(tmp_path / "p@1/tokenizer.json"))
    ids = tokenizer.encode("t5 r1 e0").ids
    assert token_texts._decode_each(tokenizer, ids) == ("t5", " r1", " e0")  # pyright: ignore[reportPrivateUsage]
