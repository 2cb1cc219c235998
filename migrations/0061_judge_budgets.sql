-- What the judges of a rollout batch may use and have used, and why a batch was stopped.

alter table app.rollout_batch
  add column judge_max_calls integer check (judge_max_calls >= 0),          -- null: no limit
  add column judge_max_cost_usd numeric(12, 6) check (judge_max_cost_usd >= 0),  -- null: no limit
  add column judge_calls integer not null default 0,                        -- attempts, also those that failed
  add column judge_cost_usd numeric(12, 6) not null default 0,              -- with the reservations of calls that run
  add column stop_reason text not null default '' check (stop_reason in ('', 'judge_budget'));
