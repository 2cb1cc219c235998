-- The tool policy that was given with a question, as it was given: the run's own may have been narrowed since. A follow-up
-- that gives none gets it. null: the run had the default.
alter table app.run add column policy_given jsonb;
