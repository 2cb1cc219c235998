-- Follow-ups: the kind that was requested, and the earlier report that the run is about.

alter table app.run add column follow_up jsonb;  -- core.follow_up.FollowUp; null: the run follows no report
