"""The only room that speaks to Postgres. Rows become typed values here and nowhere else."""
