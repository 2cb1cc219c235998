"""Model-free research with pure functions: question splitting, sentence scoring, reports of quotes."""
