"""Times with another unit than their source, and numbers that are part of a name."""

import pytest

from offing.core.claim_support import ClaimSupport, find_unsupported_values


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("Connections stay open for 72 seconds.", "Default: `72000` (keep-alive timeout)"),
        ("The plug-in may take 10 s.", "Default: `10000`"),
        ("It waits for 10 minutes.", "**keepAliveMaxTimeout** Default: `600e3`"),
        ("It waits for 300 s.", "Default to 300e3 milliseconds."),
        ("It waits for half a minute, 30 seconds.", "The timeout is 0.5 minutes, that is 30000."),
        ("The limit is 1.5 hours.", "The limit is 90 minutes."),
        ("Nach 72 s ist Schluss.", "72000 ms"),
        ("默认保持 4 秒。", "Default: `4e3` milliseconds"),
        ("The option applies to HTTP/2 and TLS/1.3.", "every session of the protocol"),
    ],
)
def test_a_time_in_another_unit_and_the_version_of_a_protocol_need_no_other_quote(sentence: str, quote: str) -> None:
    assert find_unsupported_values(sentence, ClaimSupport((quote,), question=sentence)) == ()


@pytest.mark.parametrize(
    ("sentence", "quote", "values"),
    [
        ("It waits for 72 seconds.", "Default: `7200`", ("72",)),
        ("It waits for 60 s.", "At most 60000 % of the others, and 2 minutes", ()),
        ("It waits for 10 minutes.", "Default: `10000`", ("10",)),
        ("It waits for 1 hour.", "60 cars crossed.", ("1",)),
        ("It carries 72 cars.", "Default: `72000`", ("72",)),
        ("It waits for 5 seconds.", "It waits for 5000.5 units.", ("5",)),
    ],
)
def test_another_time_or_another_quantity_is_unsupported(sentence: str, quote: str, values: tuple[str, ...]) -> None:
    assert find_unsupported_values(sentence, ClaimSupport((quote,), question=sentence)) == values
