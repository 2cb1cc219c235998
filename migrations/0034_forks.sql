-- A fork is a run that begins with the steps of another, up to one of them, and goes on by itself.

alter table app.run
  add column forked_from uuid,                 -- null: it is no fork, or what it was forked from is gone
  add column forked_at integer,                -- its last step that is the other run's; null: it is no fork
  add column forked_kind text check (forked_kind in ('ask', 'rollout', 'child')),  -- what the first of its origins was
  add column forked_spent jsonb,               -- what its origin had used by then; part of its own figures
  add constraint run_forked_from foreign key (tenant_id, forked_from) references app.run (tenant_id, id)
    on delete set null (forked_from),
  add constraint run_fork check ((forked_at is null) = (forked_kind is null)
                                 and (forked_at is null) = (forked_spent is null)
                                 and (forked_from is null or forked_at is not null));
create index run_by_origin on app.run (tenant_id, forked_from) where forked_from is not null;

-- The threads whose runs a run of this one may look back at, each up to a time: the thread itself, and where it began
-- with a fork, the thread of the run that it is a fork of, as that run saw it.
create function app.thread_line(wanted uuid) returns table (thread_id uuid, before timestamptz)
language sql stable set search_path = pg_catalog, app, pg_temp as $$
  with recursive line(thread_id, before) as (
    select wanted, 'infinity'::timestamptz
    union all
    select origin.thread_id, origin.created_at
      from line join app.run fork on fork.thread_id = line.thread_id and fork.forked_from is not null
           join app.run origin on origin.id = fork.forked_from)
  select line.thread_id, line.before from line
$$;
