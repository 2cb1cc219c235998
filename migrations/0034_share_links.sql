-- Share links: addresses under which one version of a report can be read without an account.

create table app.report_share (
  id              uuid primary key,
  tenant_id       uuid not null references app.tenant on delete cascade,
  run_id          uuid not null,
  report_version  integer not null,            -- a link shows the version with which it was created
  token_sha256    bytea not null unique check (octet_length(token_sha256) = 32),
  label           text not null default '' check (char_length(label) <= 200),  -- for the owner only; '' means none
  shows_question  boolean not null,
  created_at      timestamptz not null default clock_timestamp(),
  expires_at      timestamptz not null check (expires_at <= created_at + interval '367 days'),
  revoked_at      timestamptz,                 -- null means not revoked
  last_opened_at  timestamptz,                 -- null means never
  opened_count    bigint not null default 0,
  -- A deleted run takes its links with it.
  foreign key (tenant_id, run_id, report_version) references app.report (tenant_id, run_id, version) on delete cascade
);
create index report_share_by_time on app.report_share (tenant_id, created_at desc, id desc);
create index report_share_of_run on app.report_share (tenant_id, run_id, report_version);

select app.protect_table('app.report_share');

-- Returns what a valid link shows, and counts the opening if it is one. It runs as the owner, because the tenant is not
-- known before. An unknown, an expired and a revoked link take the same path: one search of one index, and no row.
create function app.open_report_share(share_sha256 bytea, is_opening boolean)
returns table (share_id uuid, tenant_id uuid, run_id uuid, report_version integer, shows_question boolean,
               expires_at timestamptz)
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  update app.report_share s
     set opened_count = s.opened_count + is_opening::integer,
         last_opened_at = case when is_opening then clock_timestamp() else s.last_opened_at end
   where s.token_sha256 = share_sha256 and s.revoked_at is null and s.expires_at > clock_timestamp()
  returning s.id, s.tenant_id, s.run_id, s.report_version, s.shows_question, s.expires_at
$$;
