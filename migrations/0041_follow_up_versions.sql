-- An edit that a follow-up made is a version of the report that it edited, with the run of the follow-up in its body.

alter table app.report
  add column edited_in uuid generated always as ((body->'edit'->>'run_id')::uuid) stored;  -- null: no follow-up made it

create index report_by_follow_up on app.report (tenant_id, edited_in) where edited_in is not null;
