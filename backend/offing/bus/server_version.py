"""Connection test for Redis, used by `offing doctor`."""

# pyright: reportUnknownMemberType=false
# redis-py's own types are partial.

from typing import Any

from redis import Redis


def get_redis_version(url: str) -> str:
    """Return the name and version of a Redis server.

    Raises `redis.RedisError` with the reason if it does not answer.
    """
    with Redis.from_url(url, socket_connect_timeout=3) as client:
        info: dict[str, Any] = client.info("server")  # pyright: ignore[reportAssignmentType]
    name = "Valkey" if "valkey_version" in info else "Redis"
    return f"{name} {info.get('valkey_version') or info.get('redis_version')}"
