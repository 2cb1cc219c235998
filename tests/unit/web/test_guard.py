from collections.abc import Sequence

import pytest

from offing.web.guard import Guard
from offing.web.url import Refused, Target, target_of
from tests.unit.web.hostile import ANSWERS, GOOD, LITERALS, METADATA, PARSERS, SMUGGLES

PUBLIC = ("93.184.216.34", "2606:2800:220:1::1")


async def resolve(host: str, port: int) -> Sequence[str]:
    if host == "public.example" or host.endswith(".public.example"):
        return PUBLIC
    return ANSWERS.get(host, ())


async def judged(text: str, guard: Guard) -> Sequence[str] | Refused:
    target = target_of(text)
    return target if isinstance(target, Refused) else await guard.addresses(target.host, target.port)


HOSTILE = (*LITERALS, *METADATA, *PARSERS, *SMUGGLES, *(f"https://{name}/" for name in ANSWERS))


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_hostile_address_is_refused_with_a_reason(text: str) -> None:
    found = await judged(text, Guard(resolve))
    assert isinstance(found, Refused)
    assert found.problem.endswith(".")


@pytest.mark.parametrize("text", GOOD)
async def test_an_ordinary_address_passes(text: str) -> None:
    assert not isinstance(await judged(text, Guard(resolve)), Refused)


def test_there_are_as_many_cases_as_are_promised() -> None:
    assert len(set(HOSTILE)) >= 150
    assert len(set(GOOD)) >= 30


async def test_the_operator_may_allow_one_place_and_no_more_than_that() -> None:
    guard = Guard(resolve, hosts=frozenset({"127.0.0.1:8080"}))
    assert await judged("http://127.0.0.1:8080/", guard) == ["127.0.0.1"]
    assert isinstance(await judged("http://127.0.0.1:8081/", guard), Refused)
    assert isinstance(await judged("http://127.0.0.1/", guard), Refused)


async def test_a_look_up_that_fails_is_a_refusal() -> None:
    async def failing(host: str, port: int) -> Sequence[str]:
        raise OSError("no resolver")

    found = await Guard(failing).addresses("public.example", 443)
    assert isinstance(found, Refused)
    assert isinstance(target_of("https://public.example/"), Target)
