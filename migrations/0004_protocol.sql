-- What must see every tenant's runs: claiming, heartbeats, sweeping, and finding whose key or session it is.
-- These run as the owner and give out no more than run, tenant, fence and wishes.

-- A lease counts as live for one more term after Postgres came up, so that an outage takes no run from its worker.
create function app.lease_live(lease_until timestamptz, term interval) returns boolean language sql stable
  return greatest(lease_until, pg_postmaster_start_time() + term) > clock_timestamp();

create function app.claim_run(wanted uuid, worker text, term interval)
returns table (tenant uuid, fence bigint, thread uuid, lost boolean, stalled integer)
language sql security definer set search_path = pg_catalog, app as $$
  with before as materialized (
    select r.id, r.status = 'running' as lost, r.progress_seq > r.claimed_progress as advanced
      from app.run r
     where r.id = wanted
       and (r.not_before is null or r.not_before <= clock_timestamp())
       and (r.status in ('queued', 'waiting') or (r.status = 'running' and not app.lease_live(r.lease_until, term)))
       and (r.status <> 'waiting' or r.not_before is not null)
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

create function app.heartbeat(runs uuid[], fences bigint[], term interval)
returns table (run uuid, cancel_mode text, pause_requested boolean, overdue boolean)
language sql security definer set search_path = pg_catalog, app as $$
  update app.run r
     set lease_until = clock_timestamp() + term
    from unnest(runs, fences) as held(id, fence)
   where r.id = held.id and r.fence = held.fence and r.status = 'running' and app.lease_live(r.lease_until, term)
  returning r.id, r.cancel_mode, r.pause_requested, coalesce(r.deadline_at <= clock_timestamp(), false)
$$;

-- Runs that nobody seems to have been told about: hints are repeated, never trusted.
create function app.sweep_runs(forgotten_after interval, term interval, most integer)
returns setof uuid language sql security definer set search_path = pg_catalog, app as $$
  update app.run r
     set published_at = clock_timestamp()
    from (select id from app.run
           where (status = 'queued' and published_at < clock_timestamp() - forgotten_after
                  and (not_before is null or not_before <= clock_timestamp()))
              or (status = 'waiting' and not_before <= clock_timestamp()
                  and published_at < clock_timestamp() - forgotten_after)
              or (status = 'running' and not app.lease_live(lease_until, term)
                  and published_at < clock_timestamp() - least(forgotten_after, interval '1 second'))
           order by published_at limit most for update skip locked) as due
   where r.id = due.id
  returning r.id
$$;

create function app.tenant_of_key(key_id text, sha256 bytea) returns uuid
language sql security definer set search_path = pg_catalog, app as $$
  update app.api_key set last_used_at = clock_timestamp()
   where id = key_id and secret_sha256 = sha256 and revoked_at is null
     and (expires_at is null or expires_at > clock_timestamp())
  returning tenant_id
$$;

create function app.redeem_login(sha256 bytea) returns uuid
language sql security definer set search_path = pg_catalog, app as $$
  update app.login set used_at = clock_timestamp()
   where token_sha256 = sha256 and used_at is null and expires_at > clock_timestamp()
  returning tenant_id
$$;

create function app.session_of(sha256 bytea) returns table (tenant uuid, csrf_token text)
language sql security definer set search_path = pg_catalog, app as $$
  select tenant_id, csrf_token from app.session where token_sha256 = sha256 and expires_at > clock_timestamp()
$$;
