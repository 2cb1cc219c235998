-- Totals of ended runs, so that metrics read only the rows of runs that are active or have just ended.

-- Runs that have ended and are not part of the totals yet.
create table app.uncounted_run (
  run_id     uuid primary key,
  tenant_id  uuid not null,
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index uncounted_run_of_tenant on app.uncounted_run (tenant_id, run_id);

create table app.run_total (
  tenant_id       uuid not null references app.tenant on delete cascade,
  graph           text not null,
  status          text not null,
  run_count       bigint not null,              -- that are stored: a deletion subtracts its run
  queued_seconds  numeric not null,    -- from submission to the first claim, also of deleted runs
  started_count   bigint not null,              -- runs in queued_seconds
  primary key (tenant_id, graph, status)
);

create table app.step_total (
  tenant_id     uuid not null references app.tenant on delete cascade,
  kind          text not null,
  label         text not null,
  step_count    bigint not null,
  seconds       numeric not null,
  timed_count   bigint not null,
  failed_count  bigint not null,
  primary key (tenant_id, kind, label)
);

create table app.role_call_total (
  tenant_id             uuid not null references app.tenant on delete cascade,
  role                  text not null,
  engine                text not null,
  model                 text not null,
  prompt_tokens         bigint not null,
  completion_tokens     bigint not null,
  cost_usd              numeric not null,
  failed_attempt_count  bigint not null,
  streamed_count        bigint not null,
  first_token_seconds   numeric not null,
  first_token_counts    bigint[] not null,      -- calls up to each of app.first_token_buckets()
  slot_wait_count       bigint not null,
  slot_wait_seconds     numeric not null,
  primary key (tenant_id, role, engine, model)
);

select app.protect_table(t) from unnest(array['app.uncounted_run', 'app.run_total', 'app.step_total',
  'app.role_call_total']::regclass[]) as t;

-- Active runs of all kinds, which metrics read one by one.
create index run_unfinished on app.run (tenant_id, id) where ended_at is null;

-- Upper bounds in seconds of the buckets of the time to the first token.
create function app.first_token_buckets() returns double precision[] language sql immutable
  return array[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]::double precision[];

-- The sums over these runs, in the columns of the totals. Rows that a fork copied belong to the run in which they were
-- created.
create function app.sum_runs(run_ids uuid[])
returns table (tenant_id uuid, graph text, status text, run_count bigint, queued_seconds numeric,
               started_count bigint)
language sql stable
begin atomic
  select r.tenant_id, r.graph, r.status, count(*),
         coalesce(sum(extract(epoch from r.started_at - r.created_at)), 0), count(r.started_at)
    from app.run r where r.id = any(run_ids) group by 1, 2, 3;
end;

create function app.sum_steps(run_ids uuid[])
returns table (tenant_id uuid, kind text, label text, step_count bigint, seconds numeric, timed_count bigint,
               failed_count bigint)
language sql stable
begin atomic
  select s.tenant_id, s.kind, s.label, count(*), coalesce(sum(s.ms), 0) / 1000.0, count(s.ms),
         count(*) filter (where not s.ok)
    from app.run r join app.step s on s.run_id = r.id and s.seq > coalesce(r.forked_at_seq, 0)
   where r.id = any(run_ids) group by 1, 2, 3;
end;

create function app.sum_role_calls(run_ids uuid[])
returns table (tenant_id uuid, role text, engine text, model text, prompt_tokens bigint, completion_tokens bigint,
               cost_usd numeric, failed_attempt_count bigint, streamed_count bigint,
               first_token_seconds numeric, first_token_counts bigint[], slot_wait_count bigint,
               slot_wait_seconds numeric)
language sql stable
begin atomic
  select c.tenant_id, c.role, c.engine, c.model, sum(c.prompt_tokens), sum(c.completion_tokens), sum(c.cost_usd),
         sum(jsonb_array_length(c.failed_attempts)), count(c.sampling->>'first_text_ms'),
         coalesce(sum((c.sampling->>'first_text_ms')::numeric), 0) / 1000.0,
         array(select count(*) filter (where taken <= bound)
                 from unnest(app.first_token_buckets()) as bound,
                      unnest(array_agg((c.sampling->>'first_text_ms')::double precision / 1000.0)) as taken
                group by bound order by bound),
         count(c.sampling->>'slot_wait_ms'),
         coalesce(sum((c.sampling->>'slot_wait_ms')::numeric), 0) / 1000.0
    from app.run r join app.role_call c on c.run_id = r.id and c.seq > coalesce(r.forked_at_seq, 0)
   where r.id = any(run_ids) group by 1, 2, 3, 4;
end;

-- Adds arrays of the same length, element by element.
create function app.add_counts(first bigint[], second bigint[]) returns bigint[] language sql immutable
  return array(select a + b from unnest(first, second) with ordinality as pairs(a, b, position) order by position);

-- Adds at most max_count ended runs to the totals and returns their number. Only one process does so at a time; others
-- get 0.
create function app.count_ended_runs(max_count integer) returns bigint
language plpgsql security definer set search_path = pg_catalog, app, pg_temp as $$
declare
  ended uuid[];
begin
  if not pg_try_advisory_xact_lock(hashtext('app.count_ended_runs')) then
    return 0;
  end if;
  with due as (select u.run_id from app.uncounted_run u order by u.run_id limit max_count for update skip locked),
  gone as (delete from app.uncounted_run u using due where u.run_id = due.run_id returning u.run_id)
  select coalesce(array_agg(gone.run_id), '{}') into ended from gone;
  if ended = '{}' then
    return 0;
  end if;
  insert into app.run_total as t select * from app.sum_runs(ended)
  on conflict (tenant_id, graph, status) do update
     set run_count = t.run_count + excluded.run_count, queued_seconds = t.queued_seconds + excluded.queued_seconds,
         started_count = t.started_count + excluded.started_count;
  insert into app.step_total as t select * from app.sum_steps(ended)
  on conflict (tenant_id, kind, label) do update
     set step_count = t.step_count + excluded.step_count, seconds = t.seconds + excluded.seconds,
         timed_count = t.timed_count + excluded.timed_count, failed_count = t.failed_count + excluded.failed_count;
  insert into app.role_call_total as t select * from app.sum_role_calls(ended)
  on conflict (tenant_id, role, engine, model) do update
     set prompt_tokens = t.prompt_tokens + excluded.prompt_tokens,
         completion_tokens = t.completion_tokens + excluded.completion_tokens,
         cost_usd = t.cost_usd + excluded.cost_usd,
         failed_attempt_count = t.failed_attempt_count + excluded.failed_attempt_count,
         streamed_count = t.streamed_count + excluded.streamed_count,
         first_token_seconds = t.first_token_seconds + excluded.first_token_seconds,
         first_token_counts = app.add_counts(t.first_token_counts, excluded.first_token_counts),
         slot_wait_count = t.slot_wait_count + excluded.slot_wait_count,
         slot_wait_seconds = t.slot_wait_seconds + excluded.slot_wait_seconds;
  return cardinality(ended);
end $$;

create function app.queue_ended_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  insert into app.uncounted_run (run_id, tenant_id) values (new.id, new.tenant_id) on conflict do nothing;
  return null;
end $$;
create trigger run_to_count after update of ended_at on app.run for each row
  when (old.ended_at is null and new.ended_at is not null) execute function app.queue_ended_run();

-- A deleted run is no longer stored. What it has used stays in the totals.
create function app.subtract_deleted_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  perform from app.uncounted_run u where u.run_id = old.id for update;  -- waits while the run is being counted
  if not found then
    update app.run_total t set run_count = t.run_count - 1
     where t.tenant_id = old.tenant_id and t.graph = old.graph and t.status = old.status;
  end if;
  return old;
end $$;
create trigger run_to_subtract before delete on app.run for each row
  when (old.ended_at is not null) execute function app.subtract_deleted_run();

insert into app.uncounted_run (run_id, tenant_id) select id, tenant_id from app.run where ended_at is not null;
