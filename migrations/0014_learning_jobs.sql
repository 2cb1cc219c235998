-- Jobs that make prompt libraries: workers do them, which need no packages for weights; the trainer does the others.

create or replace function app.claim_train_job(wanted uuid, worker text, term interval)
returns table (job uuid, tenant uuid, fence bigint) language sql security definer set search_path = pg_catalog, app as $$
  with due as materialized (
    select j.id from app.train_job j
     where (wanted is null or j.id = wanted) and j.kind <> 'prompts'
       and (j.state = 'queued' or j.state = 'running' and not app.lease_live(j.lease_until, term))
     order by j.created_at limit 1 for update of j skip locked)
  update app.train_job j
     set state = 'running', fence = j.fence + 1, worker = claim_train_job.worker, stop_reason = '',
         lease_until = clock_timestamp() + term, started_at = coalesce(j.started_at, clock_timestamp())
    from due where j.id = due.id
  returning j.id, j.tenant_id, j.fence
$$;

create function app.claim_learning_job(worker text, term interval)
returns table (job uuid, tenant uuid, fence bigint) language sql security definer set search_path = pg_catalog, app as $$
  with due as materialized (
    select j.id from app.train_job j
     where j.kind = 'prompts' and (j.state = 'queued' or j.state = 'running' and not app.lease_live(j.lease_until, term))
     order by j.created_at limit 1 for update of j skip locked)
  update app.train_job j
     set state = 'running', fence = j.fence + 1, worker = claim_learning_job.worker, stop_reason = '',
         lease_until = clock_timestamp() + term, started_at = coalesce(j.started_at, clock_timestamp())
    from due where j.id = due.id
  returning j.id, j.tenant_id, j.fence
$$;

-- Two at once would learn the same from the same runs, and be paid for it twice.
create unique index train_job_learning on app.train_job (tenant_id, name)
 where kind = 'prompts' and state in ('queued', 'running', 'paused');
