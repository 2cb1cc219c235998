"""Rule-based roles and the compact prompt format of AgentFlow in a synthetic world."""
