-- How many training steps a job will have, as its process finds when it starts: the page and the terminals say "step n of
-- N". Null before that, and where the number is not known.
alter table app.training_job add column planned_steps integer check (planned_steps >= 0);
