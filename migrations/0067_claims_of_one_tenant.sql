-- A claim reads less where the queue of a class is empty or has runs of one tenant only, which is the usual case.
-- Its order is that of app.lock_next_runs_of_tenants, without a count of the active runs of each tenant.

alter function app.lock_next_runs(integer, integer, uuid[], interval) rename to lock_next_runs_of_tenants;

create function app.lock_next_runs(
  class integer, max_runs integer, unqueued_run_ids uuid[], lease_duration interval) returns uuid[]
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
declare
  first_tenant uuid;
  picked uuid[];
begin
  if cardinality(unqueued_run_ids) = 0 then
    select r.tenant_id into first_tenant from app.run r
     where r.status = 'queued' and app.run_class(r.kind) = class
     order by app.run_class(r.kind), r.tenant_id limit 1;
    if not found then
      return '{}';
    end if;
    perform from app.run r
      where r.status = 'queued' and app.run_class(r.kind) = class and r.tenant_id > first_tenant limit 1;
    if not found then
      select coalesce(array_agg(next.id), '{}') into picked
        from (select r.id from app.run r
               where r.status = 'queued' and app.run_class(r.kind) = class and r.tenant_id = first_tenant
                 and (r.not_before is null or r.not_before <= clock_timestamp())
               order by app.run_class(r.kind), r.tenant_id, app.run_stage(r.kind, r.started_at), r.queued_at, r.id
               limit max_runs for update skip locked) as next;
      return picked;
    end if;
  end if;
  return app.lock_next_runs_of_tenants(class, max_runs, unqueued_run_ids, lease_duration);
end $$;
