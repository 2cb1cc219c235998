-- A lease protects its owner for as long as nobody else has claimed: the fence decides what is written, and the clock
-- only when another may claim. After a time in which nobody could renew a lease, owners come first.

-- Since when somebody has been here without a gap, to renew leases or to look for lapsed ones. A row a kind of owner,
-- of the whole platform and no tenant's; only functions that run as the owner see it.
create table app.lease_watch (
  kind   text primary key check (kind in ('run', 'train_job')),
  since  timestamptz not null,
  at     timestamptz not null                    -- when somebody was last here
);
alter table app.lease_watch enable row level security;
alter table app.lease_watch force row level security;
do $$ begin
  execute format('create policy platform on app.lease_watch to %I using (true) with check (true)', current_user);
end $$;

-- How long nobody may be here before it counts as a gap. Owners renew at least four times a term.
create function app.lease_gap(term interval) returns interval language sql immutable return term * 0.75;

-- Note that somebody is here. All times are the statement's: one that stood still in its middle claims nothing new.
create function app.watch_leases(watched text, term interval) returns void
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  insert into app.lease_watch as w (kind, since, at) values (watched, statement_timestamp(), statement_timestamp())
  on conflict (kind) do update
     set since = case when w.at < excluded.at - app.lease_gap(term) then excluded.at else w.since end,
         at = greatest(w.at, excluded.at)
$$;

-- Whether a lease still keeps others from claiming. It does for one more term after Postgres came up, and after a gap;
-- in a gap it does until somebody has noted its end. Null, which nobody holds any more, never does.
create function app.lease_live(lease_until timestamptz, term interval, watched text) returns boolean
language sql stable
  return case when lease_until is null then false else
    greatest(lease_until, pg_postmaster_start_time() + term,
             (select case when w.at < statement_timestamp() - app.lease_gap(term) then 'infinity'::timestamptz
                          else w.since + term end
                from app.lease_watch w where w.kind = watched)) > statement_timestamp() end;

create or replace function app.lease_live(lease_until timestamptz, term interval) returns boolean language sql stable
  return app.lease_live(lease_until, term, 'run');

-- Renews what nobody else has claimed, however long ago its lease passed.
create or replace function app.heartbeat(runs uuid[], fences bigint[], term interval)
returns table (run uuid, cancel_mode text, pause_requested boolean, overdue boolean)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select app.watch_leases('run', term);
  with free as materialized (
    select r.id
      from app.run r join unnest(runs, fences) as held(id, fence) on r.id = held.id and r.fence = held.fence
     where r.status = 'running'
       for update of r skip locked),
  renewed as (
    update app.run r set lease_until = clock_timestamp() + term from free where r.id = free.id)
  select r.id, r.cancel_mode, r.pause_requested, coalesce(r.deadline_at <= clock_timestamp(), false)
    from app.run r join unnest(runs, fences) as held(id, fence) on r.id = held.id and r.fence = held.fence
   where r.status = 'running'
$$;

-- The trainer's jobs. Whoever looks for one has been here.
create or replace function app.claim_train_job(wanted uuid, worker text, term interval)
returns table (job uuid, tenant uuid, fence bigint)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select app.watch_leases('train_job', term);
  with due as materialized (
    select j.id from app.train_job j
     where (wanted is null or j.id = wanted) and j.kind <> 'prompts'
       and (j.state = 'queued' or j.state = 'running' and not app.lease_live(j.lease_until, term, 'train_job'))
     order by j.created_at limit 1 for update of j skip locked)
  update app.train_job j
     set state = 'running', fence = j.fence + 1, worker = claim_train_job.worker, stop_reason = '',
         lease_until = clock_timestamp() + term, started_at = coalesce(j.started_at, clock_timestamp())
    from due where j.id = due.id
  returning j.id, j.tenant_id, j.fence
$$;

-- For whoever saw the process end: what it had claimed can be claimed at once. How many runs and jobs that are.
create function app.release_leases(ended text) returns bigint
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with runs as (
    update app.run set lease_until = null where owner = ended and status = 'running' returning 1),
  jobs as (
    update app.train_job set lease_until = null where worker = ended and state = 'running' returning 1)
  select (select count(*) from runs) + (select count(*) from jobs)
$$;
