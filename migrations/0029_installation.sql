-- What a person sees and changes of the installation: the right of the operator, worker processes and the queue.

-- Operator ----------------------------------------------------------------------------------------------------------

-- A login link that was printed on the machine for the operator opens a session that may change the installation, for
-- a limited time. API keys never have this right.
alter table app.login_link add column is_operator boolean not null default false;
alter table app.session add column operator_until timestamptz;        -- null means that it never had the right

drop function app.find_session(bytea);
create function app.find_session(session_sha256 bytea)
returns table (tenant_id uuid, csrf_token text, is_operator boolean)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select s.tenant_id, s.csrf_token, coalesce(s.operator_until > clock_timestamp(), false) from app.session s
   where s.token_sha256 = session_sha256 and s.expires_at > clock_timestamp()
$$;

-- Workers -----------------------------------------------------------------------------------------------------------

-- Running worker processes of the whole installation. Only functions that run as the owner read it.
create table app.worker_process (
  name          text primary key,
  version       text not null,
  slots         integer not null,              -- runs that it advances at the same time
  runs          integer not null,              -- runs that it advances now
  started_at    timestamptz not null default clock_timestamp(),
  last_seen_at  timestamptz not null default clock_timestamp()
);
alter table app.worker_process enable row level security;
alter table app.worker_process force row level security;
do $$ begin
  execute format('create policy platform on app.worker_process to %I using (true) with check (true)', current_user);
end $$;

-- Records that a worker process is alive, and forgets those that have not been for a day.
create function app.record_worker(worker text, code_version text, slot_count integer, run_count integer) returns void
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  delete from app.worker_process where last_seen_at < clock_timestamp() - interval '1 day' and name <> worker;
  insert into app.worker_process as w (name, version, slots, runs)
  values (worker, code_version, slot_count, run_count)
  on conflict (name) do update
     set version = excluded.version, slots = excluded.slots, runs = excluded.runs, last_seen_at = clock_timestamp()
$$;

-- Forgets a worker process that has ended.
create function app.forget_worker(worker text) returns void
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  delete from app.worker_process where name = worker
$$;

-- Returns at most max_count worker processes, most recently seen first, with the seconds since then.
create function app.list_workers(max_count integer)
returns table (name text, version text, slots integer, runs integer, started_at timestamptz, silent_seconds float8)
language sql stable security definer set search_path = pg_catalog, app, pg_temp as $$
  select w.name, w.version, w.slots, w.runs, w.started_at,
         extract(epoch from clock_timestamp() - w.last_seen_at)::float8
    from app.worker_process w order by w.last_seen_at desc, w.name limit max_count
$$;

-- Returns how many runs of all tenants, other than rollouts, are queued and could be claimed now, and for how long the
-- oldest has waited. Rollouts may wait for hours.
create function app.get_queue_state() returns table (run_count bigint, oldest_seconds float8)
language sql stable security definer set search_path = pg_catalog, app, pg_temp as $$
  select count(*), extract(epoch from clock_timestamp() - min(r.queued_at))::float8
    from app.run r
   where r.status = 'queued' and app.run_class(r.kind) = 0 and (r.not_before is null or r.not_before <= clock_timestamp())
$$;
