-- Tenants, runs and the log of what they did.
-- Every table carries its tenant and shows a row only to a transaction that named it in app.tenant.

create schema app;

create function app.tenant() returns uuid language sql stable
  return nullif(current_setting('app.tenant', true), '')::uuid;

-- Rows of other tenants do not exist for anyone but the owner, whose functions serve all of them.
create function app.protect(protected regclass, tenant_column text default 'tenant_id') returns void
language plpgsql as $$
begin
  execute format('alter table %s enable row level security', protected);
  execute format('alter table %s force row level security', protected);
  execute format('create policy own_rows on %s using (%I = app.tenant()) with check (%I = app.tenant())',
                 protected, tenant_column, tenant_column);
  execute format('create policy platform on %s to %I using (true) with check (true)', protected, current_user);
end $$;

create table app.tenant (
  id                uuid primary key,
  name              text not null unique,
  daily_spend_usd   numeric(12, 6),            -- null: no cap
  training_opt_in   boolean not null default false,
  created_at        timestamptz not null default clock_timestamp()
);

create table app.api_key (
  id            text primary key,
  tenant_id     uuid not null references app.tenant on delete cascade,
  name          text not null,
  secret_sha256 bytea not null,
  created_at    timestamptz not null default clock_timestamp(),
  expires_at    timestamptz,
  revoked_at    timestamptz,
  last_used_at  timestamptz
);

create table app.login (
  token_sha256  bytea primary key,
  tenant_id     uuid not null references app.tenant on delete cascade,
  expires_at    timestamptz not null,
  used_at       timestamptz
);

create table app.session (
  token_sha256  bytea primary key,
  tenant_id     uuid not null references app.tenant on delete cascade,
  csrf_token    text not null,
  created_at    timestamptz not null default clock_timestamp(),
  expires_at    timestamptz not null
);

create table app.thread (
  id          uuid primary key,
  tenant_id   uuid not null references app.tenant on delete cascade,
  title       text not null,
  created_at  timestamptz not null default clock_timestamp()
);
create index thread_by_time on app.thread (tenant_id, created_at desc, id desc);

create table app.run (
  id               uuid primary key,
  tenant_id        uuid not null references app.tenant on delete cascade,
  thread_id        uuid not null references app.thread on delete cascade,
  graph            text not null,
  graph_version    text not null,
  question         text not null,
  engines          jsonb not null,             -- role -> EngineChoice
  policy           jsonb not null,
  policy_sha256    text not null,
  budget           jsonb not null,
  scope            jsonb not null default '{}',
  seed             bigint not null default 0,
  idempotency_key  text,
  request_sha256   text,
  traceparent      text,
  status           text not null check (status in
                     ('queued', 'running', 'waiting', 'paused', 'done', 'failed', 'cancelled', 'dead')),
  stop_reason      text,
  error            text,
  waiting_for      text,
  fence            bigint not null default 0,
  owner            text,
  lease_until      timestamptz,
  not_before       timestamptz,
  next_seq         bigint not null default 1,  -- seq of the next step
  claims           integer not null default 0,
  stalled_claims   integer not null default 0, -- lost leases in a row without progress
  progress_seq     bigint not null default 0,  -- last journalled step
  claimed_progress bigint not null default 0,  -- progress_seq when the run was last claimed
  cancel_mode      text check (cancel_mode in ('discard', 'write')),
  pause_requested  boolean not null default false,
  deadline_at      timestamptz,
  turns            integer not null default 0,
  tokens           bigint not null default 0,
  usd              numeric(12, 6) not null default 0,
  work_seconds     double precision not null default 0,
  created_at       timestamptz not null default clock_timestamp(),
  queued_at        timestamptz not null default clock_timestamp(),
  published_at     timestamptz not null default clock_timestamp(),
  started_at       timestamptz,
  ended_at         timestamptz,
  unique (tenant_id, idempotency_key)
);
create index run_by_time on app.run (tenant_id, created_at desc, id desc);
create unique index run_one_active_a_thread on app.run (thread_id)
  where status in ('queued', 'running', 'waiting', 'paused');
create index run_to_sweep on app.run (status, published_at) where status in ('queued', 'running', 'waiting');

create function app.guard_run() returns trigger language plpgsql as $$
begin
  if old.status in ('done', 'failed', 'cancelled', 'dead') and new.status <> old.status then
    raise exception 'run % has ended as %', old.id, old.status using errcode = 'check_violation';
  end if;
  if new.fence < old.fence then
    raise exception 'the fence of run % never falls', old.id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger run_guard before update of status, fence on app.run for each row execute function app.guard_run();

create table app.step (
  run_id     uuid not null references app.run on delete cascade,
  seq        bigint not null,
  tenant_id  uuid not null,
  fence      bigint not null,                  -- 0: written by the API or the sweeper
  kind       text not null,
  label      text not null,
  title      text not null,
  detail     text not null default '',
  ok         boolean not null default true,
  ms         integer,
  tokens     integer not null default 0,
  turn       integer not null default 0,
  superstep  integer,                          -- with path and ordinal: the call journal's key
  path       text,
  ordinal    integer,
  payload    jsonb not null,
  at         timestamptz not null default clock_timestamp(),
  primary key (run_id, seq),
  unique (run_id, superstep, path, ordinal)
);
create index step_by_kind on app.step (run_id, kind, seq);

create table app.intent (                      -- an effect that was about to happen
  run_id      uuid not null references app.run on delete cascade,
  superstep   integer not null,
  path        text not null,
  ordinal     integer not null,
  tenant_id   uuid not null,
  fence       bigint not null,
  tool        text not null,
  args        jsonb not null,
  effect      text not null,
  started_at  timestamptz not null default clock_timestamp(),
  primary key (run_id, superstep, path, ordinal)
);

create table app.text_part (                   -- parts of rendered prompts, each stored once
  tenant_id  uuid not null,
  sha256     bytea not null,
  body       text not null,
  primary key (tenant_id, sha256)
);

create table app.turn (                        -- a role call as a trainer reads it
  run_id             uuid not null references app.run on delete cascade,
  seq                bigint not null,          -- its step, which holds the parsed output
  tenant_id          uuid not null,
  role               text not null,
  engine             text not null,
  model              text not null default '',
  prompt             jsonb not null,           -- [[message role, [sha256 hex of each part]]]
  completion         text not null default '',
  sampling           jsonb not null default '{}',
  prompt_tokens      integer not null default 0,
  completion_tokens  integer not null default 0,
  usd                numeric(12, 6) not null default 0,
  priced             boolean not null default true,
  failed_attempts    jsonb not null default '[]',
  trainable          text not null check (trainable in ('rl', 'sft', 'none')),
  trainable_reason   text not null default '',
  primary key (run_id, seq)
);

create table app.checkpoint (
  thread_id      uuid not null references app.thread on delete cascade,
  ns             text not null default '',
  checkpoint_id  text not null,
  parent_id      text,
  tenant_id      uuid not null,
  run_id         uuid not null references app.run on delete cascade,
  fence          bigint not null,
  superstep      integer not null,
  turn           integer,                      -- null: the graph counts none
  body           bytea not null,
  metadata       jsonb not null,
  created_at     timestamptz not null default clock_timestamp(),
  primary key (thread_id, ns, checkpoint_id)
);
create index checkpoint_of_run on app.checkpoint (run_id, superstep);

create table app.checkpoint_write (            -- interrupts and their answers; other pending writes are replayed
  thread_id      uuid not null references app.thread on delete cascade,
  ns             text not null default '',
  checkpoint_id  text not null,
  task_id        text not null,
  idx            integer not null,
  tenant_id      uuid not null,
  run_id         uuid not null references app.run on delete cascade,
  task_path      text not null default '',
  channel        text not null,
  type           text not null,
  body           bytea not null,
  primary key (thread_id, ns, checkpoint_id, task_id, idx)
);

create table app.spend (                       -- money of a tenant and day
  tenant_id  uuid not null references app.tenant on delete cascade,
  day        date not null,
  reserved   numeric(12, 6) not null default 0,
  used       numeric(12, 6) not null default 0,
  primary key (tenant_id, day)
);

select app.protect('app.tenant', 'id');
select app.protect(t) from unnest(array['app.api_key', 'app.login', 'app.session', 'app.thread', 'app.run', 'app.step',
  'app.intent', 'app.text_part', 'app.turn', 'app.checkpoint', 'app.checkpoint_write', 'app.spend']::regclass[]) as t;
