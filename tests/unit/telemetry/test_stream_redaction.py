"""No part of a secret is released, however a text is split."""

import random

import pytest

from offing.telemetry.redaction import MASK, bind_secrets, redact_with, remember_secret
from offing.telemetry.stream_redaction import MAX_HELD_CHARS, StreamRedactor

KEY = "sk-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
PASSPHRASE = "correct horse battery"
SECRETS = frozenset({PASSPHRASE, "tr0ub4dor&3"})

TEXT = f"""The key is {KEY} and the header is Authorization: Bearer abc123def456.
Then tr0ub4dor&3 and {PASSPHRASE} came; postgres://user:hunter22@host/db was the address.
api_key = "0123456789abcdef" follows
-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEA
second line
-----END RSA PRIVATE KEY-----
and the last line is plain, with 東京 in it. """


def split_text(text: str, seed: int) -> list[str]:
    draw, parts, position = random.Random(seed), list[str](), 0
    while position < len(text):
        size = draw.randint(1, 15)
        parts.append(text[position : position + size])
        position += size
    return parts


@pytest.mark.parametrize("seed", range(30))
def test_the_released_parts_are_the_redacted_text(seed: int) -> None:
    redactor = StreamRedactor(lambda: SECRETS)
    released = "".join(map(redactor.feed, [*split_text(TEXT, seed), "and a tail of words that is long enough. " * 4]))
    clean = redact_with(TEXT, SECRETS)
    beginning = released[: len(clean)]
    for secret in (KEY[6:], "abc123def456", "tr0ub4dor", "horse", "hunter22", "89abcdef", "MIIEow", "second line"):
        assert secret not in released
    assert beginning.startswith(f"The key is {MASK} and the header is")
    assert "and the last line is plain, with 東京 in it." in released


def test_the_last_word_is_held_back_until_it_is_complete() -> None:
    redactor = StreamRedactor(frozenset[str])
    assert redactor.feed("one two") == "one "
    assert redactor.feed(" three") == "two "


def test_a_text_without_spaces_is_released_after_each_character() -> None:
    assert StreamRedactor(frozenset[str]).feed("燈塔建於一七五九年") == "燈塔建於一七五九年"


def test_a_run_of_text_without_a_boundary_is_masked_and_not_kept() -> None:
    redactor = StreamRedactor(frozenset[str])
    assert redactor.feed("x" * (MAX_HELD_CHARS + 1)) == MASK
    assert redactor.feed(" next word") == " next "


def test_a_stored_key_that_the_work_remembers_is_redacted_without_being_named() -> None:
    with bind_secrets():
        remember_secret("a-stored-key-of-a-tenant")
        redactor = StreamRedactor()
        released = redactor.feed("It is a-stored-key-") + redactor.feed("of-a-tenant and ") + redactor.feed("more. ")
    assert released == "It is [redacted] and more. "
