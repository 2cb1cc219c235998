-- Asking: when a run asks a person before it researches, and saved ways to ask.

alter table app.run
  add column interactions text[] not null default '{}';  -- clarify, plan_review; empty means that it asks nothing

create table app.question_preset (
  id          uuid primary key,
  tenant_id   uuid not null references app.tenant on delete cascade,
  name        text not null check (char_length(name) between 1 and 100),
  settings    jsonb not null,                  -- what the preset sets of a question; absent fields have their default
  created_at  timestamptz not null default clock_timestamp(),
  updated_at  timestamptz not null default clock_timestamp(),
  unique (tenant_id, name)
);

select app.protect_table('app.question_preset'::regclass);
