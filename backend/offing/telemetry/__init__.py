"""How the platform is watched: logs, traces, metrics, and the redaction that all of them share."""
