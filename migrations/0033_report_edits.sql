-- Versions of a report that people save. They are rows of app.report like those that runs write, with the person in
-- their body, so that exports, citations, ratings, erasure and deletion reach them without knowing about edits.

alter table app.report
  add column edited_by text generated always as (body->'edit'->>'by') stored;  -- null: the run wrote this version
