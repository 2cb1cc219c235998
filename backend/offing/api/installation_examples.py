"""Example values of the installation's schemas, for the OpenAPI document."""

from offing.api.example_values import Example

TIMESTAMP = "2026-01-01T12:00:00Z"
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

TOOL_EXAMPLE: Example = {
    "name": "search",
    "description": "Searches the wiki.",
    "arguments": ["query", "limit"],
    "is_allowed": True,
    "problem": "",
}

OUTCOME_EXAMPLE: Example = {
    "outcome": "allow",
    "rule": "allow web_search #1",
    "reason": "",
    "replacement": None,
    "replacement_outcome": None,
    "replacement_reason": "",
}

POLICY_EXAMPLE: Example = {"rules": [{"tool": "web_search", "allow_other_args": True, "max_calls": 20}]}

INSTALLATION_EXAMPLES: dict[str, Example] = {
    "InstallationHealthOut": {
        "ok": False,
        "checks": [
            {
                "name": "Postgres",
                "ok": True,
                "detail": "17.2, embedded",
                "remedy": None,
                "code": "postgres_works",
                "parameters": {"version": "17.2", "origin": "embedded"},
            },
            {
                "name": "Workers",
                "ok": False,
                "detail": "none is alive, so no run advances",
                "remedy": "Run `offing up`, or start a worker. Its log says why one has ended.",
                "code": "workers_none",
                "parameters": {},
            },
        ],
        "workers": [
            {
                "name": "host:4711:a1b2c3d4",
                "version": "0.1.0",
                "slots": 200,
                "runs": 3,
                "started_at": TIMESTAMP,
                "silent_seconds": 4.2,
            }
        ],
    },
    "StoredDataOut": {
        "retention": [{"kind": "checkpoints", "variable": "OFFING_KEEP_CHECKPOINTS_DAYS", "value": 7}],
        "database_bytes": 48_000_000,
        "kinds": [{"kind": "runs", "size_bytes": 21_000_000, "row_estimate": 12_000}],
    },
    "SearchSetupOut": {
        "choice": "configured",
        "engines": [
            {
                "name": "brave",
                "is_used": True,
                "is_ready": True,
                "variables": [{"name": "BRAVE_API_KEY", "is_set": True, "is_optional": False}],
                "covers": "the web",
                "cost": "see the provider",
            }
        ],
        "problem": "",
        "remedy": "",
    },
    "SearchTestOut": {
        "seconds": 0.8,
        "hits": [{"title": "Coral reef", "url": "https://en.wikipedia.org/wiki/Coral_reef"}],
        "problem": "",
        "remedy": "",
    },
    "McpSetupOut": {
        "is_configured": True,
        "servers": [
            {
                "name": "wiki",
                "host": "mcp.wiki.example",
                "is_private": False,
                "pinned_sha256": SHA256,
                "secrets": [{"name": "MCP_WIKI_TOKEN", "sent_as": "bearer token", "is_set": True}],
                "tools": [TOOL_EXAMPLE],
                "problem": "",
            }
        ],
        "problem": "",
        "remedy": "",
    },
    "McpListingOut": {
        "tools": [TOOL_EXAMPLE],
        "sha256": SHA256,
        "changes": [
            {
                "tool": "search",
                "kind": "changed",
                "fields": [
                    {"field": "description", "before": "Searches.", "after": "Searches the wiki."},
                    {"field": "schema.properties.limit.maximum", "before": "20", "after": "50"},
                ],
                "omitted_fields": 0,
            }
        ],
        "problem": "",
    },
    "ApiKeyOut": {
        "id": "0a1b2c3d4e5f",
        "name": "nightly export",
        "created_at": TIMESTAMP,
        "expires_at": None,
        "revoked_at": None,
        "last_used_at": TIMESTAMP,
    },
    "NewApiKeyOut": {"id": "0a1b2c3d4e5f", "key": "ofg_0a1b2c3d4e5f_..."},
    "SpendingOut": {
        "max_daily_spend_usd": 5.0,
        "spent_today_usd": 0.42,
        "days": [{"day": "2026-01-01", "used_usd": 0.42, "reserved_usd": 0.0}],
        "models": [
            {
                "day": "2026-01-01",
                "engine": "litellm",
                "model": "openai/gpt-5-mini",
                "call_count": 31,
                "prompt_tokens": 88_000,
                "completion_tokens": 9_000,
                "cost_usd": 0.42,
                "is_priced": True,
            }
        ],
    },
    "NamedToolPolicyOut": {"name": "searching", "policy": POLICY_EXAMPLE, "updated_at": TIMESTAMP},
    "ToolPolicyCheckOut": {
        "policy": POLICY_EXAMPLE,
        "issues": [
            {
                "rule": "allow web_search #1",
                "field": "rules.0.reason",
                "problem": "It allows any text to be sent out",
                "remedy": "Explain in `reason` why this is intended.",
            }
        ],
        "tools": [
            {
                "name": "web_search",
                "description": "Search the web.",
                "arguments": {"type": "object", "properties": {"query": {"type": "string"}}},
                "sends_data_out": True,
                "changes_something": False,
            }
        ],
        "decisions": [
            {
                "tool": "web_search",
                "args": {"query": "pool size"},
                "before": OUTCOME_EXAMPLE,
                "after": OUTCOME_EXAMPLE,
            }
        ],
    },
}
