-- Crons of LangGraph's clients: runs that begin by a schedule.

create table app.cron (
  id               uuid primary key,
  tenant_id        uuid not null references app.tenant on delete cascade,
  assistant_id     uuid not null,
  thread_id        uuid,                       -- null means a new thread for each run
  schedule         text not null,              -- five fields
  timezone         text,                       -- of the schedule; null means UTC
  end_time         timestamptz,                -- after which no run begins; null means never
  enabled          boolean not null default true,
  next_run_at      timestamptz,                -- null means that no time is left
  deletes_thread   boolean not null default false,  -- whether the thread of a run ends with it
  multitask        text not null check (multitask in ('enqueue', 'reject', 'interrupt', 'rollback')),
  arguments        jsonb not null,             -- as of a run, without those of the assistant
  webhook          text,
  metadata         jsonb not null default '{}',
  owner            text not null,              -- who created it
  created_at       timestamptz not null default clock_timestamp(),
  updated_at       timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, thread_id) references app.thread (tenant_id, id) on delete cascade
);
create index cron_due on app.cron (next_run_at) where enabled and next_run_at is not null;
create index cron_of_tenant on app.cron (tenant_id, created_at desc);
create index cron_of_thread on app.cron (tenant_id, thread_id) where thread_id is not null;
create index cron_of_assistant on app.cron (tenant_id, assistant_id);

select app.protect_table('app.cron');

-- Returns crons of all tenants whose time has come, the longest overdue first.
create function app.list_due_crons(at timestamptz, max_count integer) returns table (tenant_id uuid, id uuid)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select c.tenant_id, c.id from app.cron c
   where c.enabled and c.next_run_at <= at
   order by c.next_run_at limit max_count
$$;

-- Where LangGraph's clients want to be told of the end of a run: one address per run, with headers of the project.
alter table app.langgraph_run add column webhook text;

create table app.run_webhook (
  run_id           uuid primary key,
  tenant_id        uuid not null,
  event_id         uuid not null default gen_random_uuid(),  -- stays the same at each attempt
  address          text not null,
  attempts         integer not null default 0,
  next_attempt_at  timestamptz default clock_timestamp(),  -- null means delivered or given up
  delivered_at     timestamptz,                -- null means not delivered
  status           integer,                    -- of the last response; null if there was none
  problem          text not null default '',   -- of the last attempt
  created_at       timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index run_webhook_due on app.run_webhook (next_attempt_at) where next_attempt_at is not null;

select app.protect_table('app.run_webhook');

-- Stored in the transaction in which the run ends, also if a client cancels it.
create function app.queue_run_webhook() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  insert into app.run_webhook (run_id, tenant_id, address)
  select q.run_id, q.tenant_id, q.webhook from app.langgraph_run q
   where q.run_id = new.id and q.webhook is not null
  on conflict (run_id) do nothing;
  return null;
end $$;
create trigger run_ended_webhook after update of status on app.run
  for each row when (new.protocol is not null and old.status is distinct from new.status
                     and new.status in ('done', 'failed', 'cancelled'))
  execute function app.queue_run_webhook();

-- Claims deliveries that are due, as app.claim_webhook_deliveries does.
create function app.claim_run_webhooks(lease interval, max_count integer)
returns table (tenant_id uuid, run_id uuid, event_id uuid, address text, attempts integer)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  update app.run_webhook d
     set attempts = d.attempts + 1, next_attempt_at = clock_timestamp() + lease
    from (select q.run_id from app.run_webhook q
           where q.next_attempt_at <= clock_timestamp()
           order by q.next_attempt_at limit max_count for update skip locked) as due
   where d.run_id = due.run_id
  returning d.tenant_id, d.run_id, d.event_id, d.address, d.attempts
$$;
