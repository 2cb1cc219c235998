-- Claims: leases, the order in which runs are claimed, and runs that are due.
-- The fencing token decides which claim may write. The lease only decides when another worker may claim.

-- Leases ------------------------------------------------------------------------------------------------------------

-- Since when some process has renewed leases, or looked for expired ones, without a gap. One row per kind of lease, for
-- the whole installation. Only functions that run as the owner read it.
create table app.lease_watch (
  kind             text primary key check (kind in ('run', 'training_job')),
  watched_since    timestamptz not null,
  last_watched_at  timestamptz not null
);
alter table app.lease_watch enable row level security;
alter table app.lease_watch force row level security;
do $$ begin
  execute format('create policy platform on app.lease_watch to %I using (true) with check (true)', current_user);
end $$;

-- The longest interval without a watching process that is not a gap. Workers renew a lease at least four times in its
-- duration.
create function app.lease_gap(lease_duration interval) returns interval language sql immutable
  return lease_duration * 0.75;

-- Records that a process is watching. All times are the time of the statement, so that a statement that was suspended
-- halfway does not record a later time.
create function app.watch_leases(lease_kind text, lease_duration interval) returns void
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  insert into app.lease_watch as w (kind, watched_since, last_watched_at)
  values (lease_kind, statement_timestamp(), statement_timestamp())
  on conflict (kind) do update
     set watched_since = case when w.last_watched_at < excluded.last_watched_at - app.lease_gap(lease_duration)
                              then excluded.last_watched_at else w.watched_since end,
         last_watched_at = greatest(w.last_watched_at, excluded.last_watched_at)
$$;

-- Returns whether a lease still prevents other claims. After a start of Postgres, and after a gap, each lease holds for
-- one more lease duration. During a gap it holds until a process has recorded the end of the gap. A lease of null is a
-- released one and does not hold.
create function app.is_lease_live(lease_until timestamptz, lease_duration interval, lease_kind text) returns boolean
language sql stable
  return case when lease_until is null then false else
    greatest(lease_until, pg_postmaster_start_time() + lease_duration,
             (select case when w.last_watched_at < statement_timestamp() - app.lease_gap(lease_duration)
                          then 'infinity'::timestamptz
                          else w.watched_since + lease_duration end
                from app.lease_watch w where w.kind = lease_kind)) > statement_timestamp() end;

create function app.is_lease_live(lease_until timestamptz, lease_duration interval) returns boolean language sql stable
  return app.is_lease_live(lease_until, lease_duration, 'run');

-- Renews the leases of runs that no other worker has claimed, even if they have expired, and returns the control
-- requests of these runs. It skips rows that are locked: a worker that writes to its run renews the lease as well.
create function app.renew_leases(run_ids uuid[], fences bigint[], lease_duration interval)
returns table (run_id uuid, cancel_mode text, pause_requested boolean, deadline_passed boolean)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select app.watch_leases('run', lease_duration);
  with free as materialized (
    select r.id
      from app.run r join unnest(run_ids, fences) as claimed(id, fence) on r.id = claimed.id and r.fence = claimed.fence
     where r.status = 'running'
       for update of r skip locked),
  renewed as (
    update app.run r set lease_until = clock_timestamp() + lease_duration from free where r.id = free.id)
  select r.id, r.cancel_mode, r.pause_requested, coalesce(r.deadline_at <= clock_timestamp(), false)
    from app.run r join unnest(run_ids, fences) as claimed(id, fence) on r.id = claimed.id and r.fence = claimed.fence
   where r.status = 'running'
$$;

-- Claims ------------------------------------------------------------------------------------------------------------

-- The rows alone decide which queued run is claimed next, and no message does: interactive runs before rollouts,
-- tenants in rotation, and started rollouts before new ones.

-- 0 for interactive runs and their children, 1 for rollouts.
create function app.run_class(kind text) returns integer language sql immutable
  return case when kind = 'rollout' then 1 else 0 end;

-- 1 for rollouts that have not started, which come after the others of their tenant. 0 for all other runs.
create function app.run_stage(kind text, started_at timestamptz) returns integer language sql immutable
  return case when kind = 'rollout' and started_at is null then 1 else 0 end;

create index run_queue on app.run
  (app.run_class(kind), tenant_id, app.run_stage(kind, started_at), queued_at, id) where status = 'queued';
create index run_active on app.run (app.run_class(kind), tenant_id) where status = 'running';

-- Returns whether a run can be claimed now.
create function app.is_claimable(
  status text, not_before timestamptz, lease_until timestamptz, lease_duration interval)
returns boolean language sql stable
  return (not_before is null or not_before <= clock_timestamp())
     and (status = 'queued' or (status = 'waiting' and not_before is not null)
          or (status = 'running' and not app.is_lease_live(lease_until, lease_duration)));

-- Claims a run for a worker. Returns no row if the run cannot be claimed.
create function app.claim_run(run_id uuid, worker text, lease_duration interval)
returns table (tenant_id uuid, fence bigint, thread_id uuid, lease_expired boolean, stall_count integer)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with before as materialized (
    select r.id, r.status = 'running' as lease_expired, r.progress_seq > r.claimed_progress_seq as has_progress
      from app.run r
     where r.id = claim_run.run_id and app.is_claimable(r.status, r.not_before, r.lease_until, lease_duration)
       for update
  )
  update app.run r
     set fence = r.fence + 1, worker = claim_run.worker, status = 'running',
         lease_until = clock_timestamp() + lease_duration, not_before = null, waiting_for = null,
         claim_count = r.claim_count + 1, claimed_progress_seq = r.progress_seq,
         stall_count = case when b.lease_expired and not b.has_progress then r.stall_count + 1 else 0 end,
         started_at = coalesce(r.started_at, clock_timestamp())
    from before b
   where r.id = b.id
  returning r.tenant_id, r.fence, r.thread_id, b.lease_expired, r.stall_count
$$;

-- Locks at most max_runs runs of a class, in the order in which they are to be claimed. The tenant with the fewest
-- active runs of the class comes first, and of a tenant the run that was queued first. unqueued_run_ids are runs that
-- are not queued and may be claimable; a run among them that was claimed meanwhile counts as active. Rows that another
-- worker is claiming are skipped, so that no claim waits for another.
create function app.lock_next_runs(
  class integer, max_runs integer, unqueued_run_ids uuid[], lease_duration interval) returns uuid[]
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
declare
  depth integer := max_runs + 8;
  ordered uuid[];
  candidate uuid;
  picked uuid[];
begin
  loop
    with recursive tenants(tenant_id) as (
      (select r.tenant_id from app.run r
        where r.status = 'queued' and app.run_class(r.kind) = class
        order by app.run_class(r.kind), r.tenant_id limit 1)
      union all
      select (select r.tenant_id from app.run r
               where r.status = 'queued' and app.run_class(r.kind) = class and r.tenant_id > q.tenant_id
               order by app.run_class(r.kind), r.tenant_id limit 1)
        from tenants q where q.tenant_id is not null),
    candidates as (
      select first.* from tenants q
       cross join lateral (
         select r.id, r.tenant_id, app.run_stage(r.kind, r.started_at) as stage, r.queued_at
           from app.run r
          where r.status = 'queued' and app.run_class(r.kind) = class and r.tenant_id = q.tenant_id
            and (r.not_before is null or r.not_before <= clock_timestamp())
          order by app.run_class(r.kind), r.tenant_id, app.run_stage(r.kind, r.started_at), r.queued_at, r.id
          limit depth) as first
       where q.tenant_id is not null
      union all
      select r.id, r.tenant_id, 0, r.queued_at
        from (select distinct unnest(unqueued_run_ids)) as u(id)
       cross join lateral (select * from app.run r where r.id = u.id) as r
       where r.status in ('waiting', 'running') and app.run_class(r.kind) = class
         and app.is_claimable(r.status, r.not_before, r.lease_until, lease_duration)),
    active as materialized (
      select t.tenant_id, (select count(*) from app.run r
                            where r.status = 'running' and app.run_class(r.kind) = class
                              and r.tenant_id = t.tenant_id
                              and (r.id <> all(unqueued_run_ids)
                                   or app.is_lease_live(r.lease_until, lease_duration))) as runs
        from (select distinct c.tenant_id from candidates c) as t),
    ranks as (
      select c.id, c.queued_at,
             a.runs + row_number() over (partition by c.tenant_id order by c.stage, c.queued_at, c.id) as tenant_rank
        from candidates c join active a on a.tenant_id = c.tenant_id)
    select array_agg(k.id order by k.tenant_rank, k.queued_at, k.id) into ordered from ranks k;
    picked := '{}';
    foreach candidate in array coalesce(ordered, '{}') loop
      perform from app.run r
        where r.id = candidate and app.is_claimable(r.status, r.not_before, r.lease_until, lease_duration)
          for update skip locked;
      continue when not found;
      picked := picked || candidate;
      exit when cardinality(picked) >= max_runs;
    end loop;
    exit when cardinality(picked) >= max_runs or coalesce(cardinality(ordered), 0) < depth or depth > 4096;
    depth := depth * 8;
  end loop;
  return picked;
end $$;

-- Claims at most max_runs runs, of which at most max_rollouts are rollouts.
create function app.claim_next_runs(
  worker text, lease_duration interval, max_runs integer, max_rollouts integer, unqueued_run_ids uuid[])
returns table (run_id uuid, is_rollout boolean, tenant_id uuid, fence bigint, thread_id uuid, lease_expired boolean,
               stall_count integer)
language plpgsql security definer set search_path = pg_catalog, app, pg_temp as $$
declare
  remaining integer := max_runs;
  class integer;
  claimed integer;
begin
  foreach class in array array[0, 1] loop
    if class = 1 then
      remaining := least(remaining, max_rollouts);
    end if;
    continue when remaining <= 0;
    return query
      select picked.id, class = 1, c.tenant_id, c.fence, c.thread_id, c.lease_expired, c.stall_count
        from unnest(app.lock_next_runs(class, remaining, unqueued_run_ids, lease_duration))
             with ordinality as picked(id, nth)
       cross join lateral app.claim_run(picked.id, worker, lease_duration) as c
       order by picked.nth;
    get diagnostics claimed = row_count;
    remaining := remaining - claimed;
  end loop;
end $$;

-- Returns runs that are not queued and can be claimed: their lease has expired, or the time they waited for has come.
create function app.sweep_runs(overdue_after interval, lease_duration interval, max_count integer)
returns setof uuid language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  update app.run r
     set dispatched_at = clock_timestamp()
    from (select id from app.run
           where (status = 'waiting' and not_before <= clock_timestamp())
              or (status = 'running' and not app.is_lease_live(lease_until, lease_duration)
                  and dispatched_at < clock_timestamp() - least(overdue_after, interval '1 second'))
           order by dispatched_at limit max_count for update skip locked) as due
   where r.id = due.id
  returning r.id
$$;
