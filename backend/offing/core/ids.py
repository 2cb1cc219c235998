"""Record ids: time-ordered UUIDs (RFC 9562, version 7), so that an index on them grows at one end."""

from uuid import UUID

_VERSION_7 = 0x7 << 76
_VARIANT = 0b10 << 62


def uuid7(unix_ms: int, random: bytes) -> UUID:
    """Return the version 7 UUID for a Unix time in milliseconds and ten random bytes."""
    noise = int.from_bytes(random[:10], "big")
    high, low = (noise >> 68) & 0xFFF, noise & ((1 << 62) - 1)
    return UUID(int=(unix_ms & ((1 << 48) - 1)) << 80 | _VERSION_7 | high << 64 | _VARIANT | low)
