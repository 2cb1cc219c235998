"""Secrets never survive `redact`, and ordinary text always does."""

import base64
import json
from urllib.parse import quote

import pytest

from offing.telemetry import redaction
from offing.telemetry.redaction import MASK, find_secrets, redact, redact_value, redact_with, remove_secrets

CANARY = 'c4n4ry+/ä"quoted\\value='


def test_a_known_secret_is_found_in_every_spelling_that_wires_and_logs_give_it() -> None:
    secrets = frozenset({CANARY})
    spellings = [CANARY, quote(CANARY, safe=""), json.dumps(CANARY)[1:-1], json.dumps(CANARY, ensure_ascii=False)[1:-1]]
    for text in spellings:
        assert redact_with(f"before {text} after", secrets) == f"before {MASK} after"


@pytest.mark.parametrize("lead", range(6))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_secret_is_found_inside_base64_at_any_alignment(lead: int, encode: type) -> None:
    wrapped = encode(b"u" * lead + CANARY.encode() + b":rest").decode()  # pyright: ignore[reportCallIssue]
    clean = redact_with(wrapped, frozenset({CANARY}))
    assert MASK in clean
    padded = clean.split(MASK)
    assert len("".join(padded)) < len(wrapped) / 2 + lead + 8


def test_secrets_come_from_telling_names_and_from_passwords_in_addresses() -> None:
    env = {
        "OPENAI_API_KEY": "openai-canary",
        "GITHUB_TOKEN": "github-canary",
        "CLIENT_SECRET_FILE": "secret-canary",
        "DB_PASSWORD": "password-canary",
        "DATABASE_URL": "postgresql://offing:p%40ss-canary@db/offing",
        "REDIS_URL": "redis://:redis-canary@cache:6379/0",
        "HOME": "/home/somebody",
        "SHORT_KEY": "abc",
    }
    assert find_secrets(env) == {
        "openai-canary",
        "github-canary",
        "secret-canary",
        "password-canary",
        "p@ss-canary",
        "redis-canary",
    }


def test_a_password_that_equals_its_user_is_no_word_to_hide_everywhere() -> None:
    assert find_secrets({"DATABASE_URL": "postgresql://postgres:postgres@localhost/x"}) == frozenset()


def test_the_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact("late-canary") == "late-canary"
    monkeypatch.setenv("LATE_API_KEY", "late-canary")
    assert redact("late-canary") == MASK
    monkeypatch.setenv("LATE_API_KEY", "later-canary")
    assert redact("late-canary later-canary") == f"late-canary {MASK}"


def test_secrets_are_worked_out_once_while_the_environment_stays_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", CANARY)
    assert redact(CANARY) == MASK
    monkeypatch.setattr(redaction, "find_secrets", pytest.fail)
    assert (redact(CANARY), redact_value([CANARY]), remove_secrets([CANARY])) == (MASK, [MASK], [MASK])


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefghijklmnop1234",
        "Authorization: Bearer abcdef.ghijkl",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "postgresql://user:hunter2@db/offing",
        "ghp_abcdefghijklmnopqrstuv123456",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "https://host/path?api_key=abcdef123456&x=1",
        'password="hunter2hunter2"',
    ],
)
def test_shapes_of_secrets_are_masked_wherever_they_stand(text: str) -> None:
    clean = redact(f"x {text} y")
    assert MASK in clean
    for word in ("hunter2", "abcdefghijkl", "abcdef123456", "MIIE", "IOSFODNN7", "dXNlcjpw", "eyJzdWIi"):
        assert word not in clean


@pytest.mark.parametrize(
    "text",
    [
        "The risk-averse tokeniser counts 12 tokens a word.",
        "https://example.org/a:b@c",
        "sk-learn and basic auth are discussed; bearer tokens, too",
        "0190f5b6-8f0e-7c3a-9d3b-3f7a3d1c2b4a",
        "a" * 64,
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_structures_keep_their_shape_and_lose_fields_that_are_secrets_by_name() -> None:
    value = {"api_key": "short", "tokens": 12, "list": ["Bearer abcdefgh1", 1, None], "max_tokens": "4096"}
    assert redact_value(value) == {
        "api_key": MASK,
        "tokens": 12,
        "list": [f"Bearer {MASK}", 1, None],
        "max_tokens": "4096",
    }


def test_what_is_kept_as_it_was_said_loses_known_secrets_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", CANARY)
    twice = json.dumps(json.dumps(CANARY))
    value = {CANARY: [f"a {CANARY}", (twice, CANARY.encode().hex(), 3, None)], "password": "Bearer abcdefgh1"}
    clean = {MASK: [f"a {MASK}", [f'"\\"{MASK}\\""', MASK, 3, None]], "password": "Bearer abcdefgh1"}
    assert remove_secrets(value) == clean
    harmless = {"text": ["sk-proj-abcdefghijklmnop1234"]}
    assert remove_secrets(harmless) is harmless
