from collections.abc import Sequence

import pytest

from offing.web.guard import AddressGuard
from offing.web.url import InvalidUrl, ParsedUrl, parse_url
from tests.unit.web.addresses import ANSWERS, GOOD, LITERALS, METADATA, PARSERS, SMUGGLES

PUBLIC = ("93.184.216.34", "2606:2800:220:1::1")


async def resolve(host: str, port: int) -> Sequence[str]:
    if host == "public.example" or host.endswith(".public.example"):
        return PUBLIC
    return ANSWERS.get(host, ())


async def resolve_text(text: str, guard: AddressGuard) -> Sequence[str] | InvalidUrl:
    target = parse_url(text)
    return target if isinstance(target, InvalidUrl) else await guard.resolve_allowed(target.host, target.port)


HOSTILE = (*LITERALS, *METADATA, *PARSERS, *SMUGGLES, *(f"https://{name}/" for name in ANSWERS))


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_hostile_address_is_rejected_with_a_reason(text: str) -> None:
    result = await resolve_text(text, AddressGuard(resolve))
    assert isinstance(result, InvalidUrl)
    assert result.problem.endswith(".")


@pytest.mark.parametrize("text", GOOD)
async def test_an_ordinary_address_passes(text: str) -> None:
    assert not isinstance(await resolve_text(text, AddressGuard(resolve)), InvalidUrl)


def test_there_are_as_many_cases_as_are_promised() -> None:
    assert len(set(HOSTILE)) >= 150
    assert len(set(GOOD)) >= 30


async def test_the_operator_may_allow_one_host_and_no_more_than_that() -> None:
    guard = AddressGuard(resolve, allowed_hosts=frozenset({"127.0.0.1:8080"}))
    assert await resolve_text("http://127.0.0.1:8080/", guard) == ["127.0.0.1"]
    assert isinstance(await resolve_text("http://127.0.0.1:8081/", guard), InvalidUrl)
    assert isinstance(await resolve_text("http://127.0.0.1/", guard), InvalidUrl)


async def test_a_look_up_that_fails_is_a_rejection() -> None:
    async def failing(host: str, port: int) -> Sequence[str]:
        raise OSError("no resolver")

    allowed = await AddressGuard(failing).resolve_allowed("public.example", 443)
    assert isinstance(allowed, InvalidUrl)
    assert isinstance(parse_url("https://public.example/"), ParsedUrl)
