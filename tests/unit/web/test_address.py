from ipaddress import ip_address

import pytest

from offing.web.address import is_public

_NON_PUBLIC = """
    224.0.0.1 ff02::1 64:ff9b::7f00:1 64:ff9b:1::a9fe:a9fe 2002:7f00:1:: ::127.0.0.1 192.0.0.192 192.88.99.1 fec0::1
    3fff::1 5f00::1 100.64.0.1 2001:0:7f00:1:: ::ffff:10.0.0.1 fe80::1%eth0 4000::1 2001:10::1 2606:4700::1111%eth0
"""
NON_PUBLIC = tuple(_NON_PUBLIC.split())
"""Addresses that some version of a standard library takes for public, or not for private."""


@pytest.mark.parametrize("text", NON_PUBLIC)
def test_an_address_of_special_purpose_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808"])
def test_an_address_that_anybody_can_reach_is_public(text: str) -> None:
    assert is_public(ip_address(text))
