-- A heartbeat waits for nobody: a run whose row is locked is being written by its owner, which renews the lease as well.

create or replace function app.heartbeat(runs uuid[], fences bigint[], term interval)
returns table (run uuid, cancel_mode text, pause_requested boolean, overdue boolean)
language sql security definer set search_path = pg_catalog, app as $$
  with free as materialized (
    select r.id
      from app.run r join unnest(runs, fences) as held(id, fence) on r.id = held.id and r.fence = held.fence
     where r.status = 'running' and app.lease_live(r.lease_until, term)
       for update of r skip locked),
  renewed as (
    update app.run r set lease_until = clock_timestamp() + term from free where r.id = free.id)
  select r.id, r.cancel_mode, r.pause_requested, coalesce(r.deadline_at <= clock_timestamp(), false)
    from app.run r join unnest(runs, fences) as held(id, fence) on r.id = held.id and r.fence = held.fence
   where r.status = 'running' and app.lease_live(r.lease_until, term)
$$;
