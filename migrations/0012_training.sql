-- Training: jobs, what they measured and remember, what was decided about policy versions and why.

-- Jobs ------------------------------------------------------------------------------------------------------------

create table app.train_job (
  id             uuid primary key,
  tenant_id      uuid not null references app.tenant on delete cascade,
  kind           text not null check (kind in ('train', 'loop', 'prompts')),
  name           text not null,                  -- of the policy that it makes a version of
  config         jsonb not null,                 -- as it was asked for, a recipe by its name
  config_sha256  text not null,
  seed           bigint not null,
  bound          timestamptz not null default clock_timestamp(),  -- groups that were complete by then
  pass           integer not null default 1,     -- through its groups, from 1
  after_at       timestamptz,                    -- where the groups that were looked at end: by completion, then id
  after_group    uuid,
  state          text not null default 'queued'
                   check (state in ('queued', 'running', 'paused', 'done', 'failed', 'cancelled')),
  wish           text check (wish in ('pause', 'cancel')),        -- null: to go on
  phase          text not null default '',       -- what it does at the moment, for people
  step           integer not null default 0,     -- steps that are committed
  good_step      integer not null default 0,     -- the last after which the guards found nothing
  groups         integer not null default 0,     -- looked at
  rollouts       integer not null default 0,     -- trained on
  checkpoint     text not null default '',       -- folder of the committed step; empty: the policy it began with
  worker         text not null default '',
  fence          bigint not null default 0,
  lease_until    timestamptz,                    -- null: nobody holds it
  produced_id    uuid references app.policy_version on delete set null,
  stop_reason    text not null default '',       -- why it ended or waits
  error          text not null default '',
  created_at     timestamptz not null default clock_timestamp(),
  started_at     timestamptz,
  ended_at       timestamptz
);
create index rollout_group_by_completion on app.rollout_group (tenant_id, completed_at, id) where state <> 'open';
create index train_job_by_time on app.train_job (tenant_id, created_at desc, id desc);
create index train_job_to_claim on app.train_job (created_at) where state in ('queued', 'running');

create table app.train_metric (
  job_id     uuid not null references app.train_job on delete cascade,
  tenant_id  uuid not null,
  step       integer not null,
  name       text not null,
  value      double precision not null,
  at         timestamptz not null default clock_timestamp(),
  primary key (job_id, step, name)
);

create table app.train_state (                   -- what plug-ins remember, as of the committed step
  job_id     uuid not null references app.train_job on delete cascade,
  name       text not null,
  tenant_id  uuid not null,
  step       integer not null,
  body       jsonb not null,
  primary key (job_id, name)
);

create table app.train_event (                   -- an audit record; never changed
  id                 uuid primary key,
  tenant_id          uuid not null references app.tenant on delete cascade,
  job_id             uuid references app.train_job on delete cascade,
  policy_version_id  uuid references app.policy_version on delete cascade,
  kind               text not null,
  detail             jsonb not null default '{}',
  at                 timestamptz not null default clock_timestamp()
);
create index train_event_of_job on app.train_event (job_id, id) where job_id is not null;
create index train_event_of_policy on app.train_event (policy_version_id, id) where policy_version_id is not null;

-- A job is one process's at a time, as a run is: a fence number, and a lease that a lost process lets lapse.
create function app.claim_train_job(wanted uuid, worker text, term interval)
returns table (job uuid, tenant uuid, fence bigint) language sql security definer set search_path = pg_catalog, app as $$
  with due as materialized (
    select j.id from app.train_job j
     where (wanted is null or j.id = wanted)
       and (j.state = 'queued' or j.state = 'running' and not app.lease_live(j.lease_until, term))
     order by j.created_at limit 1 for update of j skip locked)
  update app.train_job j
     set state = 'running', fence = j.fence + 1, worker = claim_train_job.worker, stop_reason = '',
         lease_until = clock_timestamp() + term, started_at = coalesce(j.started_at, clock_timestamp())
    from due where j.id = due.id
  returning j.id, j.tenant_id, j.fence
$$;

-- What a job decided about each rollout -----------------------------------------------------------------------------

alter table app.ledger drop constraint ledger_reason_check;
alter table app.ledger add constraint ledger_reason_check check (reason in
  ('kept', 'stale', 'zero_advantage', 'ratio', 'truncated', 'short_group', 'unselected', 'no_tokens', 'not_finite',
   'infra_error'));
create index ledger_of_run on app.ledger (run_id);

-- Evaluations -----------------------------------------------------------------------------------------------------

create table app.evaluation (                    -- one policy version on one set of tasks
  id                 uuid primary key,
  tenant_id          uuid not null references app.tenant on delete cascade,
  policy_version_id  uuid not null references app.policy_version on delete cascade,
  dataset            text not null,
  mode               text not null check (mode in ('sampled', 'greedy')),
  graph              text not null,
  seed               bigint not null,
  batch_id           uuid references app.batch on delete set null,  -- the rollouts behind it
  created_at         timestamptz not null default clock_timestamp()
);
create index evaluation_of_policy on app.evaluation (policy_version_id, id);

create table app.evaluation_result (
  evaluation_id  uuid not null references app.evaluation on delete cascade,
  task_id        uuid not null references app.task on delete cascade,
  member         integer not null,
  tenant_id      uuid not null,
  run_id         uuid references app.run on delete set null,
  reward         double precision,               -- null: the platform failed, not the policy
  outcome        text not null,
  turns          integer not null,
  tokens         integer not null,
  primary key (evaluation_id, task_id, member)
);

-- The versions that new runs get ------------------------------------------------------------------------------------

alter table app.policy_version
  add column canary_share double precision check (canary_share > 0 and canary_share <= 1),  -- null: no canary
  add column canary_since timestamptz;
update app.policy_version v set state = 'candidate'
 where state = 'canary' and exists (select from app.policy_version o where o.tenant_id = v.tenant_id and o.name = v.name
                                       and o.state = 'canary' and o.version > v.version);
create unique index policy_version_active on app.policy_version (tenant_id, name) where state = 'active';
create unique index policy_version_canary on app.policy_version (tenant_id, name) where state = 'canary';

create function app.canaries() returns table (tenant uuid, name text) language sql security definer
set search_path = pg_catalog, app as $$
  select tenant_id, name from app.policy_version where state = 'canary'
$$;

select app.protect(t) from unnest(array['app.train_job', 'app.train_metric', 'app.train_state', 'app.train_event',
  'app.evaluation', 'app.evaluation_result']::regclass[]) as t;
