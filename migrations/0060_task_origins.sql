-- Which run and which signals each task was made from, and what was left out of a set of tasks and why.

create table app.task_set (                    -- one request to make tasks from runs
  id                uuid primary key,
  tenant_id         uuid not null references app.tenant on delete cascade,
  dataset           text not null,
  request           jsonb not null,
  left_out          jsonb not null,            -- [{run_id, reason}]
  train_count       integer not null,
  held_out_count    integer not null,
  created_by        text not null,
  created_at        timestamptz not null default clock_timestamp(),
  unique (tenant_id, id)
);
create index task_set_by_dataset on app.task_set (tenant_id, dataset, created_at desc);

create table app.task_origin (
  task_id       uuid primary key,
  tenant_id     uuid not null,
  task_set_id   uuid not null,
  run_id        uuid not null,                 -- no foreign key: what was trained on a deleted run can still be named
  split_run_id  uuid not null,                 -- oldest run of the run's cluster; decides the split
  signals       jsonb not null,                -- [{kind, id, given_by, text_origin}]
  is_current    boolean not null default true, -- false: a later request for the dataset did not choose it
  foreign key (tenant_id, task_id) references app.task (tenant_id, id) on delete cascade,
  foreign key (tenant_id, task_set_id) references app.task_set (tenant_id, id) on delete cascade
);
create index task_origin_of_run on app.task_origin (tenant_id, run_id);

select app.protect_table(t) from unnest(array['app.task_set', 'app.task_origin']::regclass[]) as t;
