-- Indexes for finding runs by the end of their id, and rollouts by their outcome.

create index run_by_id_end on app.run (tenant_id, right(id::text, 6));

-- Returns at most max_count runs of the current tenant whose id ends with this text, newest first. It runs as the owner,
-- because row-level security prevents an index of an expression.
create function app.find_runs_by_id_end(id_end text, max_count integer) returns setof uuid
language plpgsql stable security definer set search_path = pg_catalog, app, pg_temp as $$
begin
  if length(id_end) >= 6 then
    return query select r.id from app.run r
      where r.tenant_id = app.current_tenant_id() and right(r.id::text, 6) = right(id_end, 6)
        and right(r.id::text, length(id_end)) = id_end
      order by r.created_at desc limit max_count;
  else
    return query select r.id from app.run r
      where r.tenant_id = app.current_tenant_id() and right(r.id::text, length(id_end)) = id_end
      order by r.created_at desc limit max_count;
  end if;
end $$;

create index rollout_by_outcome on app.rollout (tenant_id, outcome, run_id);
