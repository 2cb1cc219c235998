"""A world of made-up knowledge: training environment, evaluation set and demo in one. Pure; knows no other room."""
