"""How a run calls the world: call keys, the journal, role and tool calls, and replay, over exchangeable stores."""
