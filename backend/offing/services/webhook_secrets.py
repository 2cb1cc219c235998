"""The context with which the secrets of webhooks are encrypted."""

from uuid import UUID


def bind_secret(tenant_id: UUID, webhook_id: UUID) -> bytes:
    """Return the context with which the secret of a webhook is encrypted, so that no other webhook can have it."""
    return f"webhook {tenant_id} {webhook_id}".encode()
