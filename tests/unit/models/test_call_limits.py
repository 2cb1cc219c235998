"""The operator's limits of concurrent calls: how they are written, and which calls they hold for."""

import pytest

from offing.core.errors import InvalidInput
from offing.models.call_limits import LIMITS_VARIABLE, CallLimit, check_call_limit, find_operator_limit

ENV = {
    LIMITS_VARIABLE: "http://127.0.0.1:11434=1, https://models.example/v1=8,https://models.example/v1/team=2,openai=5"
}


def test_the_limit_of_an_address_holds_there_and_below_and_the_longest_one_wins() -> None:
    assert find_operator_limit("ollama_chat", "http://127.0.0.1:11434", ENV) == CallLimit(
        "address:http://127.0.0.1:11434", 1
    )
    assert find_operator_limit("hosted_vllm", "https://models.example/v1/other", ENV) == CallLimit(
        "address:https://models.example:443/v1", 8
    )
    team = find_operator_limit("hosted_vllm", "https://models.example/v1/team/", ENV, is_stored=True)
    assert team == CallLimit("address:https://models.example:443/v1/team", 2)


def test_the_limit_of_a_provider_does_not_hold_for_the_keys_of_tenants() -> None:
    assert find_operator_limit("openai", "", ENV) == CallLimit("provider:openai", 5)
    assert find_operator_limit("openai", "", ENV, is_stored=True) is None


def test_other_calls_have_no_limit() -> None:
    assert find_operator_limit("ollama_chat", "http://127.0.0.1:11435", ENV) is None
    assert find_operator_limit("groq", "", ENV) is None
    assert find_operator_limit("openai", "", {}) is None


@pytest.mark.parametrize("text", ["openai", "openai=0", "openai=-1", "openai=many", "=3", "ftp://x=1", "openai=10001"])
def test_an_invalid_limit_names_the_variable(text: str) -> None:
    with pytest.raises(InvalidInput, match=rf"{LIMITS_VARIABLE}.*PROVIDER=NUMBER"):
        find_operator_limit("openai", "", {LIMITS_VARIABLE: text})


@pytest.mark.parametrize("value", [0, -1, 10_001])
def test_a_limit_that_is_out_of_range_names_its_field(value: int) -> None:
    with pytest.raises(InvalidInput, match="max_concurrent_calls"):
        check_call_limit("max_concurrent_calls", value)
