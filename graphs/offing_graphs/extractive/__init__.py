"""Working without a model: taking questions apart, weighing sentences, writing reports of quotes. Pure functions."""
