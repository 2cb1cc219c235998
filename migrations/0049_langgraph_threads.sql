-- Threads of LangGraph's clients that expire.

alter table app.langgraph_thread
  add column ttl_minutes   double precision check (ttl_minutes > 0),  -- after the last change; null means never
  add column ttl_strategy  text not null default 'delete' check (ttl_strategy in ('delete', 'keep_latest')),
  add column expires_at    timestamptz,        -- null means never, or not before the next change
  add column gone_at       timestamptz;        -- since when LangGraph's clients do not see it; its runs stay
create index langgraph_thread_expiry on app.langgraph_thread (expires_at) where expires_at is not null;

create function app.set_thread_expiry() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  new.expires_at := case when new.gone_at is null then new.updated_at + new.ttl_minutes * interval '1 minute' end;
  return new;
end $$;
create trigger langgraph_thread_expiry before insert or update of updated_at, ttl_minutes, gone_at
  on app.langgraph_thread for each row execute function app.set_thread_expiry();

-- Returns threads of all tenants that have expired.
create function app.list_expired_threads(at timestamptz, max_count integer) returns table (tenant_id uuid, thread_id uuid)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select t.tenant_id, t.thread_id from app.langgraph_thread t
   where t.expires_at <= at
   order by t.expires_at limit max_count
$$;
