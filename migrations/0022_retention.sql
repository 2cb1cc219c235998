-- What ended runs no longer need is removed after a time, in small batches.

alter table app.run add column pruned_at timestamptz;  -- when its spare checkpoints were removed; null: not yet
create index run_to_prune on app.run (durability, ended_at) where ended_at is not null and pruned_at is null;

-- Ended runs whose checkpoints are due, the first to end first. A rollout that is done again whole when its worker is
-- lost needs none from its end on. In two parts, so that each reads no more of the index than it returns.
create function app.sweep_ended(older interval, most integer)
returns table (run uuid, tenant uuid) language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  (select r.id, r.tenant_id from app.run r
    where r.durability = 'exit' and r.ended_at is not null and r.pruned_at is null
    order by r.ended_at limit most)
  union all
  (select r.id, r.tenant_id from app.run r
    where r.durability = 'sync' and r.ended_at < clock_timestamp() - older and r.pruned_at is null
    order by r.ended_at limit most)
  limit most
$$;

-- Files of runs that ended long ago, the oldest first.
create index run_file_by_time on app.run_file (created_at);
create function app.sweep_run_files(older interval, most integer)
returns table (run uuid, tenant uuid) language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select distinct old.run_id, old.tenant_id
    from (select f.run_id, f.tenant_id from app.run_file f
           where f.created_at < clock_timestamp() - older order by f.created_at limit most) as old
    join app.run r on r.id = old.run_id
   where r.ended_at < clock_timestamp() - older
$$;

-- Login links that were used or have expired, and sessions that have expired. How many there were.
create function app.sweep_logins(most integer) returns bigint
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with links as (
    delete from app.login where token_sha256 in (
      select token_sha256 from app.login where used_at is not null or expires_at < clock_timestamp() limit most)
    returning 1),
  sessions as (
    delete from app.session where token_sha256 in (
      select token_sha256 from app.session where expires_at < clock_timestamp() limit most)
    returning 1)
  select (select count(*) from links) + (select count(*) from sessions)
$$;
