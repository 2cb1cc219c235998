-- Completions that no role could use are turns of their own, token by token, and say so.

alter table app.turn
  add column accepted boolean not null default true,
  add column attempt integer not null default 1 check (attempt > 0),  -- of its role call
  add column problem text not null default '',  -- why no role could use it; empty: one did
  add constraint turn_problem check (accepted = (problem = ''));

alter table app.segment drop constraint segment_fracture_check;
alter table app.segment add constraint segment_fracture_check check (fracture in
  ('root', 'fork', 'compaction', 'memory_edit', 'workspace_reset', 'subagent', 'template_break', 'rejected'));
