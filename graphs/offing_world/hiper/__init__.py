"""Rule-based roles and the compact prompt format of HiPER in a synthetic world."""
