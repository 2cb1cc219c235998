-- Experiments: configurations that answered the same tasks, with the values of each task and the verdicts of a judge.

create table app.experiment (
  id              uuid primary key,
  tenant_id       uuid not null references app.tenant on delete cascade,
  name            text not null,
  dataset         text not null,
  seed            bigint not null,
  scorers         jsonb not null,              -- [{name, weight, options}]
  judge           jsonb,                       -- EngineConfig of the judge that compares reports; null means no judge
  request_sha256  text not null,               -- of everything that was pinned
  created_at      timestamptz not null default clock_timestamp(),
  completed_at    timestamptz,                 -- null until all results and judgements are stored
  unique (tenant_id, id)
);
create unique index experiment_in_progress on app.experiment (tenant_id, request_sha256) where completed_at is null;
create index experiment_by_request on app.experiment (tenant_id, request_sha256, id);

create table app.experiment_task (
  experiment_id  uuid not null,
  task_id        uuid not null,
  tenant_id      uuid not null,
  number         integer not null,             -- order of the tasks, from 0
  primary key (experiment_id, task_id),
  foreign key (tenant_id, experiment_id) references app.experiment (tenant_id, id) on delete cascade,
  foreign key (tenant_id, task_id) references app.task (tenant_id, id) on delete cascade
);

create table app.experiment_configuration (
  experiment_id       uuid not null,
  number              integer not null,        -- from 0; the others are compared with number 0
  tenant_id           uuid not null,
  name                text not null,
  graph               text not null,
  graph_version       text not null,
  engines             jsonb not null,          -- role -> EngineConfig, as pinned
  policy_version_ids  jsonb not null default '{}',  -- role -> policy version id, as pinned
  budget              jsonb not null,
  scope               jsonb not null default '{}',  -- added to the scope of each task
  batch_id            uuid,                    -- null until its rollouts are requested, or if the batch was deleted
  primary key (experiment_id, number),
  foreign key (tenant_id, experiment_id) references app.experiment (tenant_id, id) on delete cascade,
  foreign key (tenant_id, batch_id) references app.rollout_batch (tenant_id, id) on delete set null (batch_id)
);

create table app.experiment_result (           -- one task under one configuration
  experiment_id  uuid not null,
  number         integer not null,
  task_id        uuid not null,
  tenant_id      uuid not null,
  run_id         uuid,                         -- null if the run was deleted
  outcome        text not null,                -- '' if the task has no finalized rollout
  has_abstained  boolean not null default false,  -- whether it gave no answer or said that there is none
  scores         jsonb not null,               -- scorer -> value; null if the scorer failed
  turns          integer not null,
  tokens         bigint not null,
  cost_usd       numeric(12, 6) not null,
  seconds        double precision not null,
  primary key (experiment_id, number, task_id),
  foreign key (tenant_id, experiment_id) references app.experiment (tenant_id, id) on delete cascade,
  foreign key (tenant_id, task_id) references app.task (tenant_id, id) on delete cascade,
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete set null (run_id)
);

create table app.experiment_judgement (        -- one comparison of two reports by the judge
  experiment_id  uuid not null,
  number         integer not null,             -- of the configuration that is compared with number 0
  task_id        uuid not null,
  is_swapped     boolean not null default false,  -- whether its report was shown first
  tenant_id      uuid not null,
  run_id         uuid not null,
  base_run_id    uuid not null,                -- of configuration 0
  verdict        text check (verdict in ('first', 'second', 'tie')),  -- by position; null if the judge failed
  reason         text not null default '',     -- of the verdict or of the failure
  model          text not null default '',
  tokens         bigint not null default 0,
  cost_usd       numeric(12, 6) not null default 0,
  created_at     timestamptz not null default clock_timestamp(),
  primary key (experiment_id, number, task_id, is_swapped),
  foreign key (tenant_id, experiment_id) references app.experiment (tenant_id, id) on delete cascade,
  foreign key (tenant_id, task_id) references app.task (tenant_id, id) on delete cascade,
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade,
  foreign key (tenant_id, base_run_id) references app.run (tenant_id, id) on delete cascade
);

select app.protect_table(t) from unnest(array['app.experiment', 'app.experiment_task', 'app.experiment_configuration',
  'app.experiment_result', 'app.experiment_judgement']::regclass[]) as t;
