-- A run that was enqueued while the active run of its thread ended was not seen by the transaction of that end. So both
-- sides look again after their commit, and the sweep looks for what is left.

-- Queues the next enqueued run of a thread that has no active run, and returns it. Null means that there is nothing to do.
create function app.queue_next_run(of_thread uuid) returns uuid
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
declare
  next_run uuid;
begin
  perform from app.thread where id = of_thread for no key update;
  if exists (select from app.run r where r.thread_id = of_thread and not r.enqueued
                                     and r.status in ('queued', 'running', 'waiting', 'paused')) then
    return null;
  end if;
  update app.run
     set status = case when not_before > clock_timestamp() then 'waiting' else 'queued' end,
         enqueued = false, waiting_for = null, queued_at = clock_timestamp()
   where id = (select r.id from app.run r where r.thread_id = of_thread and r.enqueued
                order by r.created_at, r.id limit 1)
  returning id into next_run;
  return next_run;
end $$;

create function app.sweep_enqueued_runs(max_count integer) returns setof uuid
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select queued from (
    select app.queue_next_run(stuck.thread_id) as queued
      from (select distinct e.thread_id from app.run e
             where e.enqueued
               and not exists (select from app.run r where r.thread_id = e.thread_id and not r.enqueued
                                                       and r.status in ('queued', 'running', 'waiting', 'paused'))
             limit max_count) as stuck) as swept
   where queued is not null
$$;

-- As before, without enqueued runs: their thread is busy, whatever their start time.
create or replace function app.sweep_runs(overdue_after interval, lease_duration interval, max_count integer)
returns setof uuid language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  update app.run r
     set dispatched_at = clock_timestamp()
    from (select id from app.run
           where (status = 'waiting' and not enqueued and not_before <= clock_timestamp())
              or (status = 'running' and not app.is_lease_live(lease_until, lease_duration)
                  and dispatched_at < clock_timestamp() - least(overdue_after, interval '1 second'))
           order by dispatched_at limit max_count for update skip locked) as due
   where r.id = due.id
  returning r.id
$$;
