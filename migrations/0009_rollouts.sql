-- Rollouts: tasks, rollout batches, groups, and when an ended rollout is due to be finalized.

create table app.task (
  id              uuid primary key,
  tenant_id       uuid not null references app.tenant on delete cascade,
  dataset         text not null,
  split           text not null default '',
  name            text not null default '',    -- id of the task in its dataset
  question        text not null,
  scope           jsonb not null default '{}',
  difficulty      double precision,            -- null if unknown
  tags            text[] not null default '{}',
  content_sha256  text not null,
  created_at      timestamptz not null default clock_timestamp(),
  unique (tenant_id, id),
  unique (tenant_id, dataset, content_sha256)
);

create table app.task_reference (              -- a separate table, so that nothing that a run reads can contain it
  task_id    uuid primary key,
  tenant_id  uuid not null,
  answers    jsonb not null,                   -- accepted answers; an empty list means that the task has no answer
  evidence   jsonb not null default '[]',
  foreign key (tenant_id, task_id) references app.task (tenant_id, id) on delete cascade
);

create table app.rollout_batch (               -- one request to collect rollouts
  id               uuid primary key,
  tenant_id        uuid not null references app.tenant on delete cascade,
  name             text not null default '',
  request          jsonb not null,
  group_count      integer not null default 0, -- requested groups; fewer exist while the batch is being created
  idempotency_key  text,
  request_sha256   text,
  created_at       timestamptz not null default clock_timestamp(),
  cancelled_at     timestamptz,
  unique (tenant_id, id),
  unique (tenant_id, idempotency_key)
);
create index rollout_batch_by_time on app.rollout_batch (tenant_id, created_at desc, id desc);

create table app.rollout_group (               -- the rollouts of one task under the same pinned versions
  id                  uuid primary key,
  tenant_id           uuid not null references app.tenant on delete cascade,
  batch_id            uuid not null,
  task_id             uuid not null,
  graph               text not null,
  graph_version       text not null,
  engines             jsonb not null,          -- role -> EngineConfig, as pinned
  policy_version_ids  jsonb not null default '{}',  -- role -> policy version id, as pinned
  scorers             jsonb not null,          -- [{name, version, weight, options}]
  size                integer not null check (size > 0),
  seed                bigint not null,
  max_attempts        integer not null check (max_attempts > 0),  -- runs per member
  tags                text[] not null default '{}',
  state               text not null default 'open' check (state in ('open', 'complete', 'incomplete')),
  created_at          timestamptz not null default clock_timestamp(),
  completed_at        timestamptz,
  unique (tenant_id, id),
  unique (batch_id, task_id),
  foreign key (tenant_id, batch_id) references app.rollout_batch (tenant_id, id) on delete cascade,
  foreign key (tenant_id, task_id) references app.task (tenant_id, id) on delete cascade
);
create index rollout_group_of_batch on app.rollout_group (batch_id, id);
create index rollout_group_of_task on app.rollout_group (task_id);
create index rollout_group_by_graph_version on app.rollout_group (graph_version);
create index rollout_group_by_completion on app.rollout_group (tenant_id, completed_at, id) where state <> 'open';

create table app.rollout (                     -- a run collected for training; a retry is a separate rollout
  run_id        uuid primary key,
  group_id      uuid not null,
  tenant_id     uuid not null,
  member        integer not null,              -- from 0 to size - 1
  attempt       integer not null default 1,
  parent_id     uuid,                          -- the rollout that it was forked from
  outcome       text check (outcome in ('answered', 'no_answer', 'truncated', 'violated', 'infra_error')),
  reward        double precision,              -- null if it has no score
  due_at        timestamptz,                   -- when to finalize: at the run's end, later after a scorer failed
  finalized_at  timestamptz,                   -- null while the run is active or not yet scored
  -- The tenant is included because the planner, until it has statistics, would otherwise read all of the tenant's
  -- rollouts.
  constraint rollout_of_group unique (group_id, tenant_id, member, attempt),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade,
  foreign key (tenant_id, group_id) references app.rollout_group (tenant_id, id) on delete cascade
);
create index rollout_by_time on app.rollout (tenant_id, finalized_at, run_id);
create index rollout_due on app.rollout (due_at) where finalized_at is null and due_at is not null;

select app.protect_table(t) from unnest(array['app.task', 'app.task_reference', 'app.rollout_batch',
  'app.rollout_group', 'app.rollout']::regclass[]) as t;

create function app.set_rollout_due() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  update app.rollout set due_at = new.ended_at where run_id = new.id and finalized_at is null;
  return null;
end $$;
create trigger run_ended after update of ended_at on app.run for each row
  when (new.kind = 'rollout' and old.ended_at is null and new.ended_at is not null)
  execute function app.set_rollout_due();

-- Returns ended rollouts that no worker has finalized, and rollouts whose group may be complete.
create function app.sweep_rollouts(overdue_after interval, max_count integer)
returns table (run_id uuid, tenant_id uuid)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select o.run_id, o.tenant_id from app.rollout o
   where o.finalized_at is null and o.due_at < clock_timestamp() - overdue_after
   order by o.due_at limit max_count
$$;

-- Returns which of these graph versions are used by runs or groups of any tenant.
create function app.list_graph_versions_in_use(graph_versions text[]) returns setof text
language sql stable security definer set search_path = pg_catalog, app, pg_temp as $$
  select v from unnest(graph_versions) as v
   where exists (select from app.run r where r.graph_version = v)
      or exists (select from app.rollout_group g where g.graph_version = v)
$$;
