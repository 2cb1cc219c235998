"""Durable execution of a run: call keys, the call journal, role calls, tool calls and replay.

The stores behind them are exchangeable.
"""
