-- Which queued run is claimed next is decided here, from the rows, and by no message: interactive runs before rollouts,
-- tenants in turns, and rollouts that have begun before new ones.

-- 0: interactive, which a run's children are too. 1: a rollout.
create function app.run_class(kind text) returns integer language sql immutable
  return case when kind = 'rollout' then 1 else 0 end;

-- Within a tenant's rollouts, new ones (1) come after those that have begun.
create function app.run_stage(kind text, started_at timestamptz) returns integer language sql immutable
  return case when kind = 'rollout' and started_at is null then 1 else 0 end;
create index run_queue on app.run
  (app.run_class(kind), tenant_id, app.run_stage(kind, started_at), queued_at, id) where status = 'queued';
create index run_active on app.run (app.run_class(kind), tenant_id) where status = 'running';
drop index app.run_to_sweep;
create index run_waiting on app.run (not_before) where status = 'waiting';

-- Up to `wanted` runs of a class, locked, in the order in which they are next: first of the tenant with the fewest active
-- runs of that class, and of a tenant the one that was queued first. `also`: runs that are not queued and may be
-- claimable. Rows that another worker is claiming at this moment are skipped, so that nobody waits for anybody.
create function app.lock_next_runs(class integer, wanted integer, also uuid[]) returns uuid[]
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
declare
  depth integer := wanted + 8;
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
        from unnest(also) as a(id)
       cross join lateral (select * from app.run r where r.id = a.id) as r
       where r.status in ('waiting', 'running') and app.run_class(r.kind) = class),
    active as materialized (
      select t.tenant_id, (select count(*) from app.run r
                            where r.status = 'running' and app.run_class(r.kind) = class
                              and r.tenant_id = t.tenant_id and r.id <> all(also)) as runs
        from (select distinct c.tenant_id from candidates c) as t),
    turns as (
      select c.id, c.queued_at,
             g.runs + row_number() over (partition by c.tenant_id order by c.stage, c.queued_at, c.id) as turn
        from candidates c join active g on g.tenant_id = c.tenant_id)
    select array_agg(t.id order by t.turn, t.queued_at, t.id) into ordered from turns t;
    picked := '{}';
    foreach candidate in array coalesce(ordered, '{}') loop
      perform from app.run r
        where r.id = candidate and (r.status = 'queued' or r.id = any(also)) for update skip locked;
      continue when not found;
      picked := picked || candidate;
      exit when cardinality(picked) >= wanted;
    end loop;
    exit when cardinality(picked) >= wanted or coalesce(cardinality(ordered), 0) < depth or depth > 4096;
    depth := depth * 8;
  end loop;
  return picked;
end $$;

-- Claims up to `room` runs, of them `rollout_room` rollouts at most.
create function app.claim_next(worker text, term interval, room integer, rollout_room integer, also uuid[])
returns table (run uuid, rollout boolean, tenant uuid, fence bigint, thread uuid, lost boolean, stalled integer)
language plpgsql security definer set search_path = pg_catalog, app, pg_temp as $$
declare
  left_over integer := room;
  here integer;
  claimed integer;
begin
  foreach here in array array[0, 1] loop
    if here = 1 then
      left_over := least(left_over, rollout_room);
    end if;
    continue when left_over <= 0;
    return query
      select picked.id, here = 1, c.tenant, c.fence, c.thread, c.lost, c.stalled
        from unnest(app.lock_next_runs(here, left_over, also)) with ordinality as picked(id, nth)
       cross join lateral app.claim_run(picked.id, worker, term) as c
       order by picked.nth;
    get diagnostics claimed = row_count;
    left_over := left_over - claimed;
  end loop;
end $$;

-- Runs that are not queued and can be claimed: their worker was lost, or the time that they waited for has come.
create or replace function app.sweep_runs(forgotten_after interval, term interval, most integer)
returns setof uuid language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  update app.run r
     set published_at = clock_timestamp()
    from (select id from app.run
           where (status = 'waiting' and not_before <= clock_timestamp())
              or (status = 'running' and not app.lease_live(lease_until, term)
                  and published_at < clock_timestamp() - least(forgotten_after, interval '1 second'))
           order by published_at limit most for update skip locked) as due
   where r.id = due.id
  returning r.id
$$;
