"""Rule-based roles and the compact prompt format of memory as action in a synthetic world."""
