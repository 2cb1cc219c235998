"""The messages of webhooks."""

from datetime import UTC, datetime
from uuid import UUID

from offing.core.webhook import RETRY_DELAYS, RunEvent, build_body, encode_secret, find_retry_delay, sign

EVENT = RunEvent(UUID(int=1), "run.done", datetime(2026, 1, 1, tzinfo=UTC), UUID(int=2), "done", "answered", "T" * 500)


def test_the_signature_is_that_of_the_specification() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # the example of Standard Webhooks
    signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_has_the_prefix_of_the_specification() -> None:
    assert encode_secret(b"\0" * 32).startswith("whsec_AAAA")


def test_a_body_has_a_short_title_and_a_link() -> None:
    data = build_body(EVENT, "https://offing.example/")["data"]
    assert (len(data["title"]), data["link"]) == (200, f"https://offing.example/runs/{UUID(int=2)}")
    assert build_body(EVENT, "")["data"]["link"] == f"/runs/{UUID(int=2)}"


def test_attempts_become_rarer_and_end() -> None:
    delays = [find_retry_delay(attempts) for attempts in range(1, len(RETRY_DELAYS) + 1)]
    assert delays == sorted(delays, key=lambda delay: delay.total_seconds() if delay else 0)
    assert find_retry_delay(len(RETRY_DELAYS) + 1) is None
