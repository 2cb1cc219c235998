-- Runs that are not queued are claimed by the same rules in each pass of a worker, and no claim waits for a tenant's
-- money.

-- Whether a run can be claimed at this moment.
create function app.is_claimable(status text, not_before timestamptz, lease_until timestamptz, term interval)
returns boolean language sql stable
  return (not_before is null or not_before <= clock_timestamp())
     and (status = 'queued' or (status = 'waiting' and not_before is not null)
          or (status = 'running' and not app.lease_live(lease_until, term)));

create or replace function app.claim_run(wanted uuid, worker text, term interval)
returns table (tenant uuid, fence bigint, thread uuid, lost boolean, stalled integer)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with before as materialized (
    select r.id, r.status = 'running' as lost, r.progress_seq > r.claimed_progress as advanced
      from app.run r
     where r.id = wanted and app.is_claimable(r.status, r.not_before, r.lease_until, term)
       for update
  )
  update app.run r
     set fence = r.fence + 1, owner = worker, status = 'running', lease_until = clock_timestamp() + term,
         not_before = null, waiting_for = null, claims = r.claims + 1, claimed_progress = r.progress_seq,
         stalled_claims = case when b.lost and not b.advanced then r.stalled_claims + 1 else 0 end,
         started_at = coalesce(r.started_at, clock_timestamp())
    from before b
   where r.id = b.id
  returning r.tenant_id, r.fence, r.thread_id, b.lost, r.stalled_claims
$$;

-- Up to `wanted` runs of a class, locked, in the order in which they are next: first of the tenant with the fewest
-- active runs of that class, and of a tenant the one that was queued first. `also`: runs that are not queued and may be
-- claimable; one that was claimed meanwhile is active like any other. Rows that another worker is claiming at this
-- moment are skipped, so that nobody waits for anybody.
drop function app.lock_next_runs(integer, integer, uuid[]);
create function app.lock_next_runs(class integer, wanted integer, also uuid[], term interval) returns uuid[]
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
        from (select distinct unnest(also)) as a(id)
       cross join lateral (select * from app.run r where r.id = a.id) as r
       where r.status in ('waiting', 'running') and app.run_class(r.kind) = class
         and app.is_claimable(r.status, r.not_before, r.lease_until, term)),
    active as materialized (
      select t.tenant_id, (select count(*) from app.run r
                            where r.status = 'running' and app.run_class(r.kind) = class
                              and r.tenant_id = t.tenant_id
                              and (r.id <> all(also) or app.lease_live(r.lease_until, term))) as runs
        from (select distinct c.tenant_id from candidates c) as t),
    turns as (
      select c.id, c.queued_at,
             g.runs + row_number() over (partition by c.tenant_id order by c.stage, c.queued_at, c.id) as turn
        from candidates c join active g on g.tenant_id = c.tenant_id)
    select array_agg(t.id order by t.turn, t.queued_at, t.id) into ordered from turns t;
    picked := '{}';
    foreach candidate in array coalesce(ordered, '{}') loop
      perform from app.run r
        where r.id = candidate and app.is_claimable(r.status, r.not_before, r.lease_until, term)
          for update skip locked;
      continue when not found;
      picked := picked || candidate;
      exit when cardinality(picked) >= wanted;
    end loop;
    exit when cardinality(picked) >= wanted or coalesce(cardinality(ordered), 0) < depth or depth > 4096;
    depth := depth * 8;
  end loop;
  return picked;
end $$;

create or replace function app.claim_next(
  worker text, term interval, room integer, rollout_room integer, also uuid[])
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
        from unnest(app.lock_next_runs(here, left_over, also, term)) with ordinality as picked(id, nth)
       cross join lateral app.claim_run(picked.id, worker, term) as c
       order by picked.nth;
    get diagnostics claimed = row_count;
    left_over := left_over - claimed;
  end loop;
end $$;

-- A reservation is of one claim, so the next claim need not touch it: all runs of a tenant share the day's row that it
-- is given back to, and whoever claims would wait for that row, with the rows of other runs and tenants locked.
alter table app.reservation add column fence bigint;
update app.reservation v set fence = r.fence from app.run r where r.id = v.run_id;
alter table app.reservation
  alter column fence set not null, drop constraint reservation_pkey, add primary key (run_id, fence, day);
comment on column app.reservation.fence is 'of the claim that reserved; a lower one than the run has: of a lost claim';

-- The claim that follows a lost one gives back what that had reserved in a transaction of its own.
drop trigger run_released on app.run;
create trigger run_released after update of status, epoch on app.run
  for each row
  when (new.fence = old.fence and (old.status, old.epoch) is distinct from (new.status, new.epoch))
  execute function app.release_reservations();
