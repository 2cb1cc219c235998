-- The metrics of an evaluated rollout besides its reward: scores by scorer, cost and seconds of work.

alter table app.evaluation_result
  add column metrics jsonb not null default '{}';  -- a scorer that gave no value is left out
