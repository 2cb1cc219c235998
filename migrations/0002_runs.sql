-- Runs: threads, steps, intents, input requests, child runs and files.
-- Foreign keys are checked without row-level security. Each one includes the tenant, so that a row can only refer to
-- rows of its own tenant.

-- Threads and runs --------------------------------------------------------------------------------------------------

create table app.thread (
  id          uuid primary key,
  tenant_id   uuid not null references app.tenant on delete cascade,
  kind        text not null default 'interactive' check (kind in ('interactive', 'rollout', 'child')),
  title       text not null,
  created_at  timestamptz not null default clock_timestamp(),
  unique (tenant_id, id)
);
create index thread_by_time on app.thread (tenant_id, kind, created_at desc, id desc);

create table app.run (
  id                     uuid primary key,
  tenant_id              uuid not null references app.tenant on delete cascade,
  thread_id              uuid not null,
  kind                   text not null default 'interactive' check (kind in ('interactive', 'rollout', 'child')),
  graph                  text not null,
  graph_version          text not null,
  question               text not null,
  engines                jsonb not null,       -- role -> EngineConfig
  tool_policy            jsonb not null,
  tool_policy_sha256     text not null,
  requested_tool_policy  jsonb,                -- as submitted, before any restriction; null means the default
  budget                 jsonb not null,
  scope                  jsonb not null default '{}',
  seed                   bigint not null default 0,
  -- 'exit' writes nothing before the slice ends: a slice whose worker crashed is repeated from its start.
  durability             text not null default 'sync' check (durability in ('sync', 'exit')),
  idempotency_key        text,
  request_sha256         text,
  traceparent            text,

  status                 text not null check (status in
                           ('queued', 'running', 'waiting', 'paused', 'done', 'failed', 'cancelled')),
  stop_reason            text,
  error                  text,
  waiting_for            text,
  waiting_since          timestamptz default clock_timestamp(),  -- start of the latest wait; null after the run's end
  wait_ended_seq         bigint,               -- next_seq when the latest wait ended
  cancel_mode            text check (cancel_mode in ('discard', 'finish')),
  pause_requested        boolean not null default false,
  deadline_at            timestamptz,

  fence                  bigint not null default 0,   -- grows by 1 with each claim
  epoch                  integer not null default 0,  -- grows when a worker reloads its journal; 0 for each new claim
  worker                 text,
  lease_until            timestamptz,
  not_before             timestamptz,
  next_seq               bigint not null default 1,   -- seq of the next step
  claim_count            integer not null default 0,
  stall_count            integer not null default 0,  -- consecutive expired leases without progress
  progress_seq           bigint not null default 0,   -- seq of the latest journaled step
  claimed_progress_seq   bigint not null default 0,   -- progress_seq at the latest claim

  turns                  integer not null default 0,
  tokens                 bigint not null default 0,
  cost_usd               numeric(12, 6) not null default 0,
  work_seconds           double precision not null default 0,

  forked_from_id         uuid,                 -- null if the run is not a fork, or if its origin was deleted
  forked_at_seq          integer,              -- seq of the last step copied from the origin; null if not a fork
  forked_kind            text check (forked_kind in ('interactive', 'rollout', 'child')),  -- kind of the first origin
  forked_usage           jsonb,                -- usage of the copied steps, which is included in the run's usage

  created_at             timestamptz not null default clock_timestamp(),
  queued_at              timestamptz not null default clock_timestamp(),
  dispatched_at          timestamptz not null default clock_timestamp(),
  started_at             timestamptz,
  ended_at               timestamptz,
  pruned_at              timestamptz,          -- when unneeded checkpoints were deleted; null means not yet

  unique (tenant_id, id),
  unique (tenant_id, idempotency_key),
  foreign key (tenant_id, thread_id) references app.thread (tenant_id, id) on delete cascade,
  constraint run_forked_from_id foreign key (tenant_id, forked_from_id) references app.run (tenant_id, id)
    on delete set null (forked_from_id),
  constraint run_fork check ((forked_at_seq is null) = (forked_kind is null)
                             and (forked_at_seq is null) = (forked_usage is null)
                             and (forked_from_id is null or forked_at_seq is not null))
);
create index run_by_time on app.run (tenant_id, created_at desc, id desc);
create index run_interactive on app.run (tenant_id, created_at desc, id desc) where kind = 'interactive';
create index run_of_thread on app.run (thread_id);
create unique index run_one_active_per_thread on app.run (thread_id)
  where status in ('queued', 'running', 'waiting', 'paused');
create index run_waiting on app.run (not_before) where status = 'waiting';
create index run_active_child on app.run (id) where kind = 'child' and ended_at is null;
create index run_by_graph_version on app.run (graph_version);
create index run_by_origin on app.run (tenant_id, forked_from_id) where forked_from_id is not null;
create index run_to_prune on app.run (durability, ended_at) where ended_at is not null and pruned_at is null;

create function app.guard_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  if old.status in ('done', 'failed', 'cancelled') and new.status <> old.status then
    raise exception 'run % has ended as %', old.id, old.status using errcode = 'check_violation';
  end if;
  if new.fence < old.fence then
    raise exception 'the fence of run % cannot decrease', old.id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger run_guard before update of status, fence on app.run for each row execute function app.guard_run();

-- A wait continues if a worker claims the run, finds that it still has to wait, and appends no step.
create function app.set_waiting_since() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  if new.status = 'running' then
    new.wait_ended_seq := new.next_seq;
  elsif new.status in ('done', 'failed', 'cancelled') then
    new.waiting_since := null;
  elsif new.status = 'paused' or old.status <> 'running' or old.waiting_since is null
        or new.next_seq > coalesce(old.wait_ended_seq, 0) then
    new.waiting_since := clock_timestamp();
  end if;
  return new;
end $$;
create trigger run_waiting_since before update of status on app.run
  for each row when (old.status is distinct from new.status) execute function app.set_waiting_since();

-- A worker that reloads its journal after a lost connection increases the epoch in the same transaction. The server
-- then rejects statements that the worker sent earlier and that are still to be executed, like those of an older claim.
create function app.reset_epoch() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  new.epoch := 0;
  return new;
end $$;
create trigger run_claimed before update of fence on app.run
  for each row when (new.fence <> old.fence) execute function app.reset_epoch();

-- Returns the threads whose runs a run of this thread may read, each up to a time. These are the thread itself and, if
-- the thread began with a fork, the thread of the fork's origin up to the creation of that origin, and so on.
create function app.thread_lineage(first_thread_id uuid)
returns table (thread_id uuid, visible_before timestamptz)
language sql stable set search_path = pg_catalog, app, pg_temp as $$
  with recursive lineage(thread_id, visible_before) as (
    select first_thread_id, 'infinity'::timestamptz
    union all
    select origin.thread_id, origin.created_at
      from lineage join app.run fork on fork.thread_id = lineage.thread_id and fork.forked_from_id is not null
           join app.run origin on origin.id = fork.forked_from_id)
  select lineage.thread_id, lineage.visible_before from lineage
$$;

-- Steps, intents and input requests ---------------------------------------------------------------------------------

create table app.step (
  run_id     uuid not null,
  seq        bigint not null,
  tenant_id  uuid not null,
  fence      bigint not null,                  -- 0 if written by the API or the sweeper
  kind       text not null,
  label      text not null,
  title      text not null,
  detail     text not null default '',
  ok         boolean not null default true,
  ms         integer,
  tokens     integer not null default 0,
  turn       integer not null default 0,
  superstep  integer,                          -- superstep, path, digest and ordinal are the call key
  path       text,
  digest     text not null default '',         -- of the request
  ordinal    integer,
  payload    jsonb not null,
  at         timestamptz not null default clock_timestamp(),
  primary key (run_id, seq),
  unique (run_id, superstep, path, digest, ordinal),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index step_by_kind on app.step (run_id, kind, seq);

create table app.intent (                      -- written before a side effect starts
  run_id       uuid not null,
  superstep    integer not null,
  path         text not null,
  digest       text not null default '',
  ordinal      integer not null,
  tenant_id    uuid not null,
  fence        bigint not null,
  tool         text not null,
  args         jsonb not null,
  side_effect  text not null,
  started_at   timestamptz not null default clock_timestamp(),
  primary key (run_id, superstep, path, digest, ordinal),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

create table app.input_request (               -- what a run asks of a person
  run_id        uuid not null,
  seq           bigint not null,               -- of the step that contains the text of the request
  tenant_id     uuid not null,
  interrupt_id  text,                          -- id of a LangGraph interrupt; null if requested through the run context
  kind          text not null check (kind in ('free_text', 'approval', 'plan_review', 'tool', 'interrupt')),
  requested_at  timestamptz not null default clock_timestamp(),
  default_at    timestamptz,                   -- when the default becomes the response; null means never
  responded_at  timestamptz,                   -- null while the request is pending
  response      jsonb,
  responder     text check (responder in ('person', 'default')),
  responded_by  text not null default '',
  consumed_seq  bigint,                        -- of the step with which the run consumed the response; null if not yet
  primary key (run_id, seq),
  unique (run_id, interrupt_id),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade,
  check ((responded_at is null) = (response is null) and (responded_at is null) = (responder is null))
);
create index input_request_pending on app.input_request (tenant_id, run_id) where responded_at is null;

-- The first response is final.
create function app.guard_input_request() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  if old.responded_at is not null
     and (new.responded_at, new.responder) is distinct from (old.responded_at, old.responder)
  then
    raise exception 'input request % of run % already has a response', old.seq, old.run_id
      using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger input_request_guard before update on app.input_request
  for each row execute function app.guard_input_request();

-- Child runs --------------------------------------------------------------------------------------------------------

-- A child run has its own thread, is not listed among the runs, and ends with its parent.
create table app.child_run (
  run_id       uuid primary key,
  tenant_id    uuid not null,
  parent_id    uuid not null,
  superstep    integer not null,               -- superstep, path, digest and ordinal are the call key in the parent
  path         text not null,
  digest       text not null default '',
  ordinal      integer not null,
  depth        integer not null check (depth > 0),
  consumed_at  timestamptz,                    -- when the parent recorded the result; null means not yet
  unique (parent_id, superstep, path, digest, ordinal),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade,
  foreign key (tenant_id, parent_id) references app.run (tenant_id, id) on delete cascade
);

-- The last child of a call to end requeues the parent in its own transaction. This function locks the parent's row
-- before it reads the other children, and the parent does the same before it starts to wait. One of the two therefore
-- sees the change of the other.
create function app.requeue_parent_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
declare
  child app.child_run;
begin
  select * into child from app.child_run where run_id = new.id;
  if not found then
    return null;
  end if;
  perform from app.run where id = child.parent_id for update;
  update app.run
     set status = 'queued', waiting_for = null, not_before = null, queued_at = clock_timestamp(),
         dispatched_at = clock_timestamp()
   where id = child.parent_id and status = 'waiting'
     and not exists (select from app.child_run c join app.run r on r.id = c.run_id
                      where c.parent_id = child.parent_id and c.superstep = child.superstep and c.path = child.path
                        and r.ended_at is null);
  return null;
end $$;
create trigger child_run_ended after update of ended_at on app.run for each row
  when (new.kind = 'child' and old.ended_at is null and new.ended_at is not null)
  execute function app.requeue_parent_run();

-- Erasing a run erases the threads of its children. A child that is erased alone has no thread left to delete.
create function app.delete_child_thread() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  delete from app.thread t using app.run r where r.id = old.run_id and t.id = r.thread_id;
  return null;
end $$;
create trigger child_run_deleted after delete on app.child_run
  for each row execute function app.delete_child_thread();

-- Returns orphaned runs: children that are active although their parent has ended. They remain when the process that
-- ended the parent stopped before it cancelled them.
create function app.list_orphaned_runs(max_count integer)
returns table (run_id uuid, tenant_id uuid)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select c.run_id, c.tenant_id
    from app.child_run c join app.run r on r.id = c.run_id join app.run p on p.id = c.parent_id
   where r.ended_at is null and p.ended_at is not null and r.cancel_mode is distinct from 'discard'
   limit max_count
$$;

-- Files -------------------------------------------------------------------------------------------------------------

create table app.run_file (                    -- a file written by code that the run executed, such as a plot
  run_id      uuid not null,
  sha256      bytea not null,
  name        text not null,                   -- path in the workspace
  tenant_id   uuid not null references app.tenant on delete cascade,
  media_type  text not null,                   -- detected from the content, not from the name
  body        bytea not null,
  created_at  timestamptz not null default clock_timestamp(),
  primary key (run_id, sha256, name),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
alter table app.run_file alter column body set storage external;   -- images are already compressed
create index run_file_by_time on app.run_file (created_at);

-- Returns at most max_count runs that ended before min_age ago and have files of that age, the run with the oldest file
-- first. Each search starts at the file of the run found before. The end of a run is checked per file, so that the
-- planner cannot start with all runs. Times are the statement's, which allows an index scan.
create function app.sweep_run_files(min_age interval, max_count integer)
returns table (run_id uuid, tenant_id uuid)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with recursive due(created_at, run_id, tenant_id, seen) as (
    (select f.created_at, f.run_id, f.tenant_id, array[f.run_id]
       from app.run_file f
      where f.created_at < statement_timestamp() - min_age
        and (select r.ended_at < statement_timestamp() - min_age from app.run r where r.id = f.run_id)
      order by f.created_at limit least(max_count, 1))
    union all
    select next.*
      from due d
     cross join lateral (
       select f.created_at, f.run_id, f.tenant_id, d.seen || f.run_id
         from app.run_file f
        where f.created_at >= d.created_at and f.created_at < statement_timestamp() - min_age
          and f.run_id <> all (d.seen)
          and (select r.ended_at < statement_timestamp() - min_age from app.run r where r.id = f.run_id)
        order by f.created_at limit 1) as next
     where cardinality(d.seen) < max_count)
  select due.run_id, due.tenant_id from due
$$;

select app.protect_table(t) from unnest(array['app.thread', 'app.run', 'app.step', 'app.intent', 'app.input_request',
  'app.child_run', 'app.run_file']::regclass[]) as t;
