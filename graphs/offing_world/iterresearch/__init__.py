"""Rule-based roles and the compact prompt format of IterResearch in a synthetic world."""
