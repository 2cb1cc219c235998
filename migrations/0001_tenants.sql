-- Tenants, API keys, login links and sessions.
-- Every table has a tenant column. Row-level security shows a row only to a transaction that has set app.tenant to the
-- row's tenant.

create schema app;

create function app.current_tenant_id() returns uuid language sql stable
  return nullif(current_setting('app.tenant', true), '')::uuid;

-- Enables row-level security on a table. The owner of the tables sees the rows of all tenants, because its functions
-- serve all tenants.
create function app.protect_table(protected_table regclass, tenant_column text default 'tenant_id') returns void
language plpgsql as $$
begin
  execute format('alter table %s enable row level security', protected_table);
  execute format('alter table %s force row level security', protected_table);
  execute format('create policy own_rows on %s using (%I = app.current_tenant_id()) '
                 'with check (%I = app.current_tenant_id())', protected_table, tenant_column, tenant_column);
  execute format('create policy platform on %s to %I using (true) with check (true)', protected_table, current_user);
end $$;

create table app.tenant (
  id                   uuid primary key,
  name                 text not null unique,
  max_daily_spend_usd  numeric(12, 6),         -- null means no limit
  training_opt_in      boolean not null default false,
  created_at           timestamptz not null default clock_timestamp()
);

create table app.api_key (
  id            text primary key,
  tenant_id     uuid not null references app.tenant on delete cascade,
  name          text not null,
  secret_sha256 bytea not null,
  created_at    timestamptz not null default clock_timestamp(),
  expires_at    timestamptz,
  revoked_at    timestamptz,
  last_used_at  timestamptz
);

create table app.login_link (                  -- opens one session
  token_sha256  bytea primary key,
  tenant_id     uuid not null references app.tenant on delete cascade,
  expires_at    timestamptz not null,
  used_at       timestamptz
);

create table app.session (
  token_sha256  bytea primary key,
  tenant_id     uuid not null references app.tenant on delete cascade,
  csrf_token    text not null,
  created_at    timestamptz not null default clock_timestamp(),
  expires_at    timestamptz not null
);

select app.protect_table('app.tenant', 'id');
select app.protect_table(t) from unnest(array['app.api_key', 'app.login_link', 'app.session']::regclass[]) as t;

-- Authentication ----------------------------------------------------------------------------------------------------

-- These functions run as the owner, because the tenant is not known before they return it. A function that runs as the
-- owner lists pg_temp last in its search path. Otherwise a temporary table of the session could hide a table of this
-- schema. Trigger functions do the same: a cascade runs them as the owner.

-- Returns the tenant of a valid key and records its use.
create function app.authenticate_api_key(key_id text, key_sha256 bytea) returns uuid
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  update app.api_key set last_used_at = clock_timestamp()
   where id = key_id and secret_sha256 = key_sha256 and revoked_at is null
     and (expires_at is null or expires_at > clock_timestamp())
  returning tenant_id
$$;

-- Marks a valid login link as used and returns its tenant.
create function app.redeem_login_link(link_sha256 bytea) returns uuid
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  update app.login_link set used_at = clock_timestamp()
   where token_sha256 = link_sha256 and used_at is null and expires_at > clock_timestamp()
  returning tenant_id
$$;

create function app.find_session(session_sha256 bytea) returns table (tenant_id uuid, csrf_token text)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select s.tenant_id, s.csrf_token from app.session s
   where s.token_sha256 = session_sha256 and s.expires_at > clock_timestamp()
$$;

-- Deletes used and expired login links and expired sessions. Returns the number of deleted rows.
create function app.sweep_logins(max_count integer) returns bigint
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with links as (
    delete from app.login_link where token_sha256 in (
      select token_sha256 from app.login_link
       where used_at is not null or expires_at < clock_timestamp() limit max_count)
    returning 1),
  sessions as (
    delete from app.session where token_sha256 in (
      select token_sha256 from app.session where expires_at < clock_timestamp() limit max_count)
    returning 1)
  select (select count(*) from links) + (select count(*) from sessions)
$$;
