"""Decide which network addresses belong to the public internet.

The table contains what IANA's special-purpose registries (RFC 6890 and its updates) exclude and the
standard library still counts as global. An address that embeds another one must pass both checks.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

_SPECIAL_V4_TEXT = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
    203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
"""
_SPECIAL_V6_TEXT = """
    ::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001:db8::/32
    2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8
"""
SPECIAL_V4 = tuple(IPv4Network(text) for text in _SPECIAL_V4_TEXT.split())
SPECIAL_V6 = tuple(IPv6Network(text) for text in _SPECIAL_V6_TEXT.split())

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""The part of IPv6 that IANA has allocated for public use."""

_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether a connection to the address goes only to the public internet.

    The well-known NAT64 prefix is public if the embedded address is. Every other way to embed an address in
    another is not public.
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in SPECIAL_V4)
    if address.scope_id:
        return False
    if address in _NAT64:
        return is_public(IPv4Address(address.packed[-4:]))
    is_global = address in _GLOBAL_UNICAST and not any(address in network for network in SPECIAL_V6)
    return is_global and address.is_global and all(is_public(inner) for inner in embedded_ipv4(address))


def embedded_ipv4(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that are embedded in an IPv6 address, by any scheme."""
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
