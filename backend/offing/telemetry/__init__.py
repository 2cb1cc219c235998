"""Observability: logs, traces, metrics, and the redaction of secrets that they share."""
