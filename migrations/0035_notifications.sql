-- Notifications of runs, and webhooks that send them to other programs.

-- What happened to an interactive run that a person may want to know. Both the list of the web UI and the deliveries to
-- webhooks are made from these rows, which are written in the transaction of the change itself.
create table app.run_event (
  id          uuid primary key,
  tenant_id   uuid not null,
  run_id      uuid not null,
  kind        text not null check (kind in ('run.waiting', 'run.done', 'run.failed', 'run.cancelled')),
  request_seq bigint,                          -- of the input request, for run.waiting
  created_at  timestamptz not null default clock_timestamp(),
  read_at     timestamptz,                     -- null means that no person has seen it
  unique (tenant_id, id),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index run_event_by_time on app.run_event (tenant_id, created_at desc, id desc);
create index run_event_unread on app.run_event (tenant_id) where read_at is null;
create index run_event_of_run on app.run_event (tenant_id, run_id);
create index run_event_by_age on app.run_event (created_at);

create table app.webhook (
  id                 uuid primary key,
  tenant_id          uuid not null references app.tenant on delete cascade,
  address            text not null check (char_length(address) <= 2048),
  events             text[] not null,          -- kinds of app.run_event
  web_ui             text not null default '', -- address of the web UI, for links; '' means links without a host
  key_id             text not null,            -- of the line of the key file that encrypts the secret
  secret_ciphertext  bytea not null,
  created_at         timestamptz not null default clock_timestamp(),
  unique (tenant_id, id)
);

create table app.webhook_delivery (
  webhook_id       uuid not null,
  event_id         uuid not null,
  tenant_id        uuid not null,
  attempts         integer not null default 0,
  next_attempt_at  timestamptz default clock_timestamp(),  -- null means delivered or given up
  delivered_at     timestamptz,                -- null means not delivered
  created_at       timestamptz not null default clock_timestamp(),
  primary key (webhook_id, event_id),
  unique (tenant_id, webhook_id, event_id),
  foreign key (tenant_id, webhook_id) references app.webhook (tenant_id, id) on delete cascade,
  foreign key (tenant_id, event_id) references app.run_event (tenant_id, id) on delete cascade
);
create index webhook_delivery_due on app.webhook_delivery (next_attempt_at) where next_attempt_at is not null;
create index webhook_delivery_of_event on app.webhook_delivery (tenant_id, event_id);

create table app.webhook_attempt (
  webhook_id  uuid not null,
  event_id    uuid not null,
  number      integer not null,                -- from 1
  tenant_id   uuid not null,
  at          timestamptz not null default clock_timestamp(),
  status      integer,                         -- of the response; null if there was none
  problem     text not null default '',        -- why it was not delivered; '' means that it was
  ms          integer not null,
  primary key (webhook_id, event_id, number),
  foreign key (tenant_id, webhook_id, event_id)
    references app.webhook_delivery (tenant_id, webhook_id, event_id) on delete cascade
);

select app.protect_table(t) from unnest(array['app.run_event', 'app.webhook', 'app.webhook_delivery',
  'app.webhook_attempt']::regclass[]) as t;

create function app.note_waiting_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  insert into app.run_event (id, tenant_id, run_id, kind, request_seq)
  select gen_random_uuid(), r.tenant_id, r.id, 'run.waiting', new.seq from app.run r where r.id = new.run_id and r.kind = 'interactive';
  return null;
end $$;
create trigger input_request_event after insert on app.input_request
  for each row when (new.responded_at is null) execute function app.note_waiting_run();

-- What was answered needs no attention any more.
create function app.note_answered_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  update app.run_event set read_at = clock_timestamp()
   where tenant_id = new.tenant_id and run_id = new.run_id and request_seq = new.seq and read_at is null;
  return null;
end $$;
create trigger input_request_answered after update of responded_at on app.input_request
  for each row when (old.responded_at is null and new.responded_at is not null)
  execute function app.note_answered_run();

-- A run that a person cancelled is no news for this person, but it is for a webhook.
create function app.note_ended_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  update app.run_event set read_at = clock_timestamp()
   where tenant_id = new.tenant_id and run_id = new.id and request_seq is not null and read_at is null;
  insert into app.run_event (id, tenant_id, run_id, kind, read_at)
  values (gen_random_uuid(), new.tenant_id, new.id, 'run.' || new.status,
          case when new.status = 'cancelled' then clock_timestamp() end);
  return null;
end $$;
create trigger run_ended_event after update of status on app.run
  for each row when (new.kind = 'interactive' and old.status is distinct from new.status
                     and new.status in ('done', 'failed', 'cancelled'))
  execute function app.note_ended_run();

create function app.queue_webhook_deliveries() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  insert into app.webhook_delivery (webhook_id, event_id, tenant_id)
  select w.id, new.id, w.tenant_id from app.webhook w
   where w.tenant_id = new.tenant_id and new.kind = any (w.events);
  return null;
end $$;
create trigger run_event_deliveries after insert on app.run_event
  for each row execute function app.queue_webhook_deliveries();

-- Claims deliveries that are due: counts an attempt, and sets the time of the next one for the case that the process
-- that claims them stops. Several workers may do so at once.
create function app.claim_webhook_deliveries(lease interval, max_count integer)
returns table (tenant_id uuid, webhook_id uuid, event_id uuid, attempts integer)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  update app.webhook_delivery d
     set attempts = d.attempts + 1, next_attempt_at = clock_timestamp() + lease
    from (select q.webhook_id, q.event_id from app.webhook_delivery q
           where q.next_attempt_at <= clock_timestamp()
           order by q.next_attempt_at limit max_count for update skip locked) as due
   where d.webhook_id = due.webhook_id and d.event_id = due.event_id
  returning d.tenant_id, d.webhook_id, d.event_id, d.attempts
$$;

-- Deletes events that are older than min_age, with their deliveries. Returns their number.
create function app.sweep_run_events(min_age interval, max_count integer) returns bigint
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with deleted as (
    delete from app.run_event where id in (
      select id from app.run_event where created_at < statement_timestamp() - min_age
       order by created_at limit max_count)
    returning 1)
  select count(*) from deleted
$$;
