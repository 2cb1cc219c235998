"""Whether a Redis answers, for `offing doctor`."""

# pyright: reportUnknownMemberType=false
# redis-py's own types are partial.

from typing import Any

from redis import Redis


def redis_answers(url: str) -> str:
    """Its name and version. Raises redis.RedisError with the reason that it does not answer."""
    with Redis.from_url(url, socket_connect_timeout=3) as client:
        info: dict[str, Any] = client.info("server")  # pyright: ignore[reportAssignmentType]
    name = "Valkey" if "valkey_version" in info else "Redis"
    return f"{name} {info.get('valkey_version') or info.get('redis_version')}"
