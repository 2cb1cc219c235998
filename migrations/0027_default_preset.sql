-- The preset of new questions that name neither a preset nor an engine.

alter table app.tenant add column default_preset text;  -- null means none; it may be a built-in one, which has no row
