-- LangGraph's server API: what its clients ask of runs and threads beyond what a question asks, and their assistants.

-- The protocol of the client that made the run; null means Offing's own.
alter table app.run add column protocol text check (protocol in ('langgraph'));

-- A run that waits for the earlier runs of its thread. It does not count as the thread's active run.
alter table app.run add column enqueued boolean not null default false;
drop index app.run_one_active_per_thread;
create unique index run_one_active_per_thread on app.run (thread_id)
  where status in ('queued', 'running', 'waiting', 'paused') and not enqueued;
create index run_enqueued on app.run (thread_id, created_at) where enqueued;

-- A run of the kind state executes no node: it writes the state that a client gave to a thread, and ends at once.
alter table app.run drop constraint run_kind_check;
alter table app.run add constraint run_kind_check check (kind in ('interactive', 'rollout', 'child', 'state'));

-- Whatever queues an enqueued run, it waits as long as its thread has an active run.
create function app.hold_enqueued_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  if new.status in ('done', 'failed', 'cancelled') then
    new.enqueued := false;
  elsif new.status in ('queued', 'running') then
    if exists (select from app.run r where r.thread_id = new.thread_id and r.id <> new.id and not r.enqueued
                                       and r.status in ('queued', 'running', 'waiting', 'paused')) then
      new.status := 'waiting';
      new.waiting_for := 'the earlier runs of its thread';
    else
      new.enqueued := false;
    end if;
  end if;
  return new;
end $$;
create trigger run_enqueued before update of status on app.run
  for each row when (old.enqueued) execute function app.hold_enqueued_run();

-- The end of a run queues the next one of its thread. One that is to start later keeps its time.
create function app.queue_enqueued_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  update app.run
     set status = case when not_before > clock_timestamp() then 'waiting' else 'queued' end,
         enqueued = false, waiting_for = null, queued_at = clock_timestamp()
   where id = (select r.id from app.run r where r.thread_id = new.thread_id and r.enqueued
                order by r.created_at, r.id limit 1);
  return null;
end $$;
create trigger run_ended_queues_next after update of status on app.run
  for each row when (new.protocol is not null and old.status is distinct from new.status
                     and new.status in ('done', 'failed', 'cancelled'))
  execute function app.queue_enqueued_run();

create table app.langgraph_run (               -- what a client of LangGraph's API asked for
  run_id        uuid primary key,
  tenant_id     uuid not null,
  assistant_id  uuid not null,
  metadata      jsonb not null default '{}',
  multitask     text not null check (multitask in ('enqueue', 'reject', 'interrupt', 'rollback')),
  arguments     jsonb not null,                -- input or command, config, context, where to interrupt, what to stream
  deletes_thread boolean not null default false,  -- whether the thread is deleted when the run has ended
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

create table app.langgraph_thread (            -- what such a client knows of a thread; a thread without a row has none
  thread_id   uuid primary key,
  tenant_id   uuid not null,
  metadata    jsonb not null default '{}',
  status      text not null default 'idle' check (status in ('idle', 'interrupted', 'error')),  -- when no run is active
  updated_at  timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, thread_id) references app.thread (tenant_id, id) on delete cascade
);
create index langgraph_thread_by_time on app.langgraph_thread (tenant_id, updated_at desc);

create table app.assistant (                   -- a graph with a configuration; those of the installation have no row
  id          uuid not null,
  tenant_id   uuid not null references app.tenant on delete cascade,
  version     integer not null,                -- the version in use
  metadata    jsonb not null default '{}',
  created_at  timestamptz not null default clock_timestamp(),
  updated_at  timestamptz not null default clock_timestamp(),
  primary key (tenant_id, id)
);

create table app.assistant_version (
  assistant_id  uuid not null,
  version       integer not null,              -- from 1
  tenant_id     uuid not null,
  graph         text not null,
  name          text not null,
  description   text,
  config        jsonb not null default '{}',
  context       jsonb not null default '{}',
  metadata      jsonb not null default '{}',
  created_at    timestamptz not null default clock_timestamp(),
  primary key (tenant_id, assistant_id, version),
  foreign key (tenant_id, assistant_id) references app.assistant (tenant_id, id) on delete cascade
);

select app.protect_table(t) from unnest(array['app.langgraph_run', 'app.langgraph_thread', 'app.assistant',
  'app.assistant_version']::regclass[]) as t;
