-- How people organize runs: titles, tags, pins, the archive, a search index of words, and indexes for the lists of runs.

alter table app.run
  add column title text not null default '' check (char_length(title) <= 200),  -- set by a person; '' means none
  add column pinned_at timestamptz,            -- null means not pinned
  add column archived_at timestamptz;          -- null means not archived

-- Lists of runs, newest first. Each index has the order of the list, so that a page reads little more than it returns.
create index run_not_archived on app.run (tenant_id, created_at desc, id desc)
  where kind = 'interactive' and archived_at is null;
create index run_archived on app.run (tenant_id, created_at desc, id desc)
  where kind = 'interactive' and archived_at is not null;
create index run_pinned on app.run (tenant_id, created_at desc, id desc)
  where kind = 'interactive' and pinned_at is not null;
create index run_not_ended on app.run (tenant_id, created_at desc, id desc)
  where kind = 'interactive' and ended_at is null;
create index run_ended_by_status on app.run (tenant_id, status, created_at desc, id desc)
  where kind = 'interactive' and ended_at is not null;
create index run_by_graph on app.run (tenant_id, graph, created_at desc, id desc) where kind = 'interactive';

-- Tags --------------------------------------------------------------------------------------------------------------

create table app.run_tag (
  run_id          uuid not null,
  tag             text not null check (char_length(tag) between 1 and 50),
  tenant_id       uuid not null,
  position        smallint not null check (position between 1 and 20),  -- in the order of the person
  run_created_at  timestamptz not null,        -- of the run, which never changes: the order of the list of a tag
  primary key (run_id, tag),
  unique (run_id, position),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index run_tag_by_time on app.run_tag (tenant_id, tag, run_created_at desc, run_id desc);

-- Search ------------------------------------------------------------------------------------------------------------

-- The words of an interactive run's question, title and latest report, as terms of offing.library.terms. Each begins
-- with the tenant's prefix, so that a search does not read what other tenants have written.
create table app.run_search (
  run_id          uuid primary key,
  tenant_id       uuid not null,
  run_created_at  timestamptz not null,
  words           tsvector not null default '',
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index run_search_by_word on app.run_search using gin (words);
create index run_search_by_time on app.run_search (tenant_id, run_created_at desc, run_id desc);

-- Runs whose words are to be indexed, because something of them is new or has changed.
create table app.run_search_queue (
  run_id     uuid primary key,
  tenant_id  uuid not null,
  queued_at  timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index run_search_queue_by_time on app.run_search_queue (tenant_id, queued_at);

select app.protect_table(t) from unnest(array['app.run_tag', 'app.run_search', 'app.run_search_queue']::regclass[]) as t;

create function app.begin_run_search() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  insert into app.run_search (run_id, tenant_id, run_created_at) values (new.id, new.tenant_id, new.created_at);
  insert into app.run_search_queue (run_id, tenant_id) values (new.id, new.tenant_id);
  return null;
end $$;
create trigger run_created after insert on app.run
  for each row when (new.kind = 'interactive') execute function app.begin_run_search();

-- An indexer deletes a run's row here before it reads the run, and skips rows that are locked. A change locks the row
-- until it is committed, or waits for the indexer and then inserts the row again. So no change is missed.
create function app.queue_run_search(changed_run_id uuid) returns void
language sql set search_path = pg_catalog, app, pg_temp as $$
  insert into app.run_search_queue (run_id, tenant_id)
  select run_id, tenant_id from app.run_search where run_id = changed_run_id
  on conflict (run_id) do update set queued_at = clock_timestamp()
$$;

create function app.queue_renamed_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  perform app.queue_run_search(new.id);
  return null;
end $$;
create trigger run_renamed after update of title, question on app.run
  for each row when ((old.title, old.question) is distinct from (new.title, new.question))
  execute function app.queue_renamed_run();

create function app.queue_reported_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  perform app.queue_run_search(new.run_id);
  return null;
end $$;
create trigger report_written after insert or update of body on app.report
  for each row execute function app.queue_reported_run();

insert into app.run_search (run_id, tenant_id, run_created_at)
select id, tenant_id, created_at from app.run where kind = 'interactive';
insert into app.run_search_queue (run_id, tenant_id, queued_at)
select id, tenant_id, created_at from app.run where kind = 'interactive';

-- Returns at most max_count runs of the current tenant with these words, newest first, after a page key (null: the
-- newest). It runs as the owner, because row-level security prevents an index for operators of text search. The
-- statement is planned for the words at hand: runs with rare words are found by them, and those with frequent words in
-- the order of time. A scan of the table would have to read the words of all runs, which the planner underestimates.
create function app.find_runs_by_words(query tsquery, before_at timestamptz, before_id uuid, max_count integer)
returns table (run_id uuid, run_created_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, app, pg_temp set enable_seqscan = off as $$
begin
  return query execute
    'select s.run_id, s.run_created_at from app.run_search s
      where s.tenant_id = $1 and s.words @@ $2 and (s.run_created_at, s.run_id) < ($3, $4)
      order by s.run_created_at desc, s.run_id desc limit $5'
    using app.current_tenant_id(), query, coalesce(before_at, 'infinity'),
          coalesce(before_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), max_count;
end $$;

-- Returns tenants with runs to index.
create function app.list_tenants_to_index(max_count integer) returns setof uuid
language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select t.id from app.tenant t
   where exists (select from app.run_search_queue q where q.tenant_id = t.id) limit max_count
$$;

-- Deletion ----------------------------------------------------------------------------------------------------------

-- A fork has copies of the states with which its origin began. They outlive the runs that wrote them.
alter table app.checkpoint alter column run_id drop not null;        -- null if the run was deleted
alter table app.checkpoint_write alter column run_id drop not null;  -- null if the run was deleted

-- Without these, each deletion of a run would read the whole of these tables for its foreign keys.
create index checkpoint_write_of_run on app.checkpoint_write (run_id);
create index evaluation_result_of_run on app.evaluation_result (run_id) where run_id is not null;
create index experiment_result_of_run on app.experiment_result (run_id) where run_id is not null;
create index experiment_judgment_of_run on app.experiment_judgment (run_id);
create index experiment_judgment_of_base_run on app.experiment_judgment (base_run_id);
