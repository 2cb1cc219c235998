-- Training: policy versions, training jobs, the ledger, and evaluations.

-- Policy versions ---------------------------------------------------------------------------------------------------

create table app.policy_version (              -- weights or a prompt library; immutable except for its state
  id                uuid primary key,
  tenant_id         uuid not null references app.tenant on delete cascade,
  name              text not null,
  version           integer not null check (version > 0),
  parent_id         uuid,
  kind              text not null check (kind in ('full', 'lora', 'prompt_library')),
  base_model        text not null default '',
  uri               text not null,             -- folder on the engine's machine
  sha256            text not null,
  tokenizer_sha256  text not null default '',
  template_sha256   text not null default '',
  state             text not null default 'candidate'
                      check (state in ('candidate', 'canary', 'active', 'retired', 'blocked')),
  canary_fraction   double precision check (canary_fraction > 0 and canary_fraction <= 1),  -- null if not a canary
  canary_since      timestamptz,
  lineage           jsonb not null default '{}',
  evaluation        jsonb not null default '{}',
  created_at        timestamptz not null default clock_timestamp(),
  unique (tenant_id, id),
  unique (tenant_id, name, version),
  foreign key (tenant_id, parent_id) references app.policy_version (tenant_id, id)
);
create unique index policy_version_active on app.policy_version (tenant_id, name) where state = 'active';
create unique index policy_version_canary on app.policy_version (tenant_id, name) where state = 'canary';

create function app.guard_policy_version() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  if (new.name, new.version, new.kind, new.base_model, new.uri, new.sha256, new.tokenizer_sha256, new.template_sha256)
     is distinct from
     (old.name, old.version, old.kind, old.base_model, old.uri, old.sha256, old.tokenizer_sha256, old.template_sha256)
  then
    raise exception 'policy version % is immutable', old.id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger policy_version_guard before update on app.policy_version
  for each row execute function app.guard_policy_version();

create function app.list_canaries() returns table (tenant_id uuid, name text) language sql security definer
set search_path = pg_catalog, app, pg_temp as $$
  select v.tenant_id, v.name from app.policy_version v where v.state = 'canary'
$$;

create table app.prompt_library (              -- the text of a policy version, in the database for all workers
  policy_version_id  uuid primary key,
  tenant_id          uuid not null references app.tenant on delete cascade,
  experiences        text not null,            -- the unchanged content of experiences.json
  cases              text not null,            -- the unchanged content of cases.json
  foreign key (tenant_id, policy_version_id) references app.policy_version (tenant_id, id) on delete cascade
);

create function app.guard_prompt_library() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  raise exception 'prompt library % is immutable', old.policy_version_id using errcode = 'check_violation';
end $$;
create trigger prompt_library_guard before update on app.prompt_library
  for each row execute function app.guard_prompt_library();

-- Jobs --------------------------------------------------------------------------------------------------------------

create table app.training_job (
  id                       uuid primary key,
  tenant_id                uuid not null references app.tenant on delete cascade,
  kind                     text not null check (kind in ('train', 'loop', 'prompt_library')),
  name                     text not null,      -- of the policy that the job creates a version of
  config                   jsonb not null,     -- as requested, with a recipe by its name
  config_sha256            text not null,
  seed                     bigint not null,

  data_until               timestamptz not null default clock_timestamp(),  -- uses groups completed before this time
  data_pass                integer not null default 1,  -- number of the pass through its groups, from 1
  last_group_completed_at  timestamptz,        -- with last_group_id, the key of the last examined group
  last_group_id            uuid,

  state                    text not null default 'queued'
                             check (state in ('queued', 'running', 'paused', 'done', 'failed', 'cancelled')),
  requested_action         text check (requested_action in ('pause', 'cancel')),  -- null means to continue
  phase                    text not null default '',  -- current activity, for display
  stop_reason              text not null default '',  -- why the job ended or is paused
  error                    text not null default '',

  step                     integer not null default 0,  -- number of committed training steps
  last_good_step           integer not null default 0,  -- last step without a guard violation
  group_count              integer not null default 0,  -- examined groups
  rollout_count            integer not null default 0,  -- trained rollouts
  checkpoint               text not null default '',  -- folder of the committed step; '' means the initial policy
  produced_version_id      uuid,

  worker                   text not null default '',
  fence                    bigint not null default 0,
  lease_until              timestamptz,        -- null if no worker has a lease
  created_at               timestamptz not null default clock_timestamp(),
  started_at               timestamptz,
  ended_at                 timestamptz,
  unique (tenant_id, id),
  foreign key (tenant_id, produced_version_id) references app.policy_version (tenant_id, id)
    on delete set null (produced_version_id)
);
create index training_job_by_time on app.training_job (tenant_id, created_at desc, id desc);
create index training_job_to_claim on app.training_job (created_at) where state in ('queued', 'running');

-- Two distillation jobs of one name would pay twice for the same result.
create unique index training_job_one_distillation on app.training_job (tenant_id, name)
 where kind = 'prompt_library' and state in ('queued', 'running', 'paused');

create table app.training_metric (
  job_id     uuid not null,
  tenant_id  uuid not null,
  step       integer not null,
  name       text not null,
  value      double precision not null,
  at         timestamptz not null default clock_timestamp(),
  primary key (job_id, step, name),
  foreign key (tenant_id, job_id) references app.training_job (tenant_id, id) on delete cascade
);

create table app.plugin_state (                -- state of plug-ins after the committed step
  job_id     uuid not null,
  name       text not null,
  tenant_id  uuid not null,
  step       integer not null,
  body       jsonb not null,
  primary key (job_id, name),
  foreign key (tenant_id, job_id) references app.training_job (tenant_id, id) on delete cascade
);

create table app.training_event (              -- an audit record, which is never changed
  id                 uuid primary key,
  tenant_id          uuid not null references app.tenant on delete cascade,
  job_id             uuid,
  policy_version_id  uuid,
  kind               text not null,
  detail             jsonb not null default '{}',
  at                 timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, job_id) references app.training_job (tenant_id, id) on delete cascade,
  foreign key (tenant_id, policy_version_id) references app.policy_version (tenant_id, id) on delete cascade
);
create index training_event_of_job on app.training_event (job_id, id) where job_id is not null;
create index training_event_of_policy on app.training_event (policy_version_id, id)
  where policy_version_id is not null;

create table app.ledger (                      -- how a job used each rollout, decided once
  job_id     uuid not null,
  run_id     uuid not null,
  tenant_id  uuid not null,
  step       integer not null,
  reason     text not null check (reason in
               ('used', 'stale', 'zero_advantage', 'zero_weight', 'truncated', 'incomplete_group', 'unselected',
                'no_tokens', 'not_finite', 'infra_error')),
  at         timestamptz not null default clock_timestamp(),
  primary key (job_id, run_id),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index ledger_of_run on app.ledger (run_id);

-- Evaluations -------------------------------------------------------------------------------------------------------

create table app.evaluation (                  -- one policy version on one set of tasks
  id                 uuid primary key,
  tenant_id          uuid not null references app.tenant on delete cascade,
  policy_version_id  uuid not null,
  dataset            text not null,
  mode               text not null check (mode in ('sampled', 'greedy')),
  graph              text not null,
  seed               bigint not null,
  batch_id           uuid,                     -- the batch of its rollouts
  created_at         timestamptz not null default clock_timestamp(),
  unique (tenant_id, id),
  foreign key (tenant_id, policy_version_id) references app.policy_version (tenant_id, id) on delete cascade,
  foreign key (tenant_id, batch_id) references app.rollout_batch (tenant_id, id) on delete set null (batch_id)
);
create index evaluation_of_policy on app.evaluation (policy_version_id, id);

create table app.evaluation_result (
  evaluation_id  uuid not null,
  task_id        uuid not null,
  member         integer not null,
  tenant_id      uuid not null,
  run_id         uuid,
  reward         double precision,             -- null if the platform failed, not the policy
  outcome        text not null,
  turns          integer not null,
  tokens         integer not null,
  primary key (evaluation_id, task_id, member),
  foreign key (tenant_id, evaluation_id) references app.evaluation (tenant_id, id) on delete cascade,
  foreign key (tenant_id, task_id) references app.task (tenant_id, id) on delete cascade,
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete set null (run_id)
);

select app.protect_table(t) from unnest(array['app.policy_version', 'app.prompt_library', 'app.training_job',
  'app.training_metric', 'app.plugin_state', 'app.training_event', 'app.ledger', 'app.evaluation',
  'app.evaluation_result']::regclass[]) as t;

-- Claims ------------------------------------------------------------------------------------------------------------

-- One process at a time works on a job: like a run, a job has a fencing token and a lease that expires when its process
-- crashes. The trainer claims the jobs of kinds train and loop. requested_job_id of null claims the oldest one.
create function app.claim_training_job(requested_job_id uuid, worker text, lease_duration interval)
returns table (job_id uuid, tenant_id uuid, fence bigint)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select app.watch_leases('training_job', lease_duration);
  with due as materialized (
    select j.id from app.training_job j
     where (j.id = requested_job_id and j.kind <> 'prompt_library' or requested_job_id is null and j.kind = 'train')
       and (j.state = 'queued'
            or j.state = 'running' and not app.is_lease_live(j.lease_until, lease_duration, 'training_job'))
     order by j.created_at limit 1 for update of j skip locked)
  update app.training_job j
     set state = 'running', fence = j.fence + 1, worker = claim_training_job.worker, stop_reason = '',
         lease_until = clock_timestamp() + lease_duration, started_at = coalesce(j.started_at, clock_timestamp())
    from due where j.id = due.id
  returning j.id, j.tenant_id, j.fence
$$;

-- Workers claim the jobs of kind prompt_library, which need no packages for weights.
create function app.claim_distillation_job(worker text, lease_duration interval)
returns table (job_id uuid, tenant_id uuid, fence bigint)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with due as materialized (
    select j.id from app.training_job j
     where j.kind = 'prompt_library'
       and (j.state = 'queued' or j.state = 'running' and not app.is_lease_live(j.lease_until, lease_duration))
     order by j.created_at limit 1 for update of j skip locked)
  update app.training_job j
     set state = 'running', fence = j.fence + 1, worker = claim_distillation_job.worker, stop_reason = '',
         lease_until = clock_timestamp() + lease_duration, started_at = coalesce(j.started_at, clock_timestamp())
    from due where j.id = due.id
  returning j.id, j.tenant_id, j.fence
$$;

-- Ends the leases of a worker process that is known to have ended, so that others can claim its runs and jobs at once.
-- Returns their number.
create function app.release_leases(ended_worker text) returns bigint
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with runs as (
    update app.run set lease_until = null where worker = ended_worker and status = 'running' returning 1),
  jobs as (
    update app.training_job set lease_until = null where worker = ended_worker and state = 'running' returning 1)
  select (select count(*) from runs) + (select count(*) from jobs)
$$;
