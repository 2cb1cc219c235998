-- What the user asks of the form of a run's report: its length, language and template.

alter table app.run add column report_style jsonb;  -- null means that nothing is asked, as for all earlier runs
