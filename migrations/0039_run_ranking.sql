-- Searches of runs list the best match first: runs whose title, tags or question have the words, before others.

-- The words of a run's title (weight A), question (B), tags (D), and of the title and headings of its latest report (C),
-- with the tenant's prefix. It is short, so that many can be ranked. `words` has the tags, too.
alter table app.run_search add column head tsvector not null default '';
create index run_search_by_head on app.run_search using gin (head);

insert into app.run_search_queue (run_id, tenant_id, queued_at)
select run_id, tenant_id, run_created_at from app.run_search on conflict (run_id) do nothing;

-- A run that is being deleted loses its tags when it is not visible any more, and is not queued.
create function app.queue_tagged_run() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  perform app.queue_run_search(r.id) from app.run r where r.id = coalesce(new.run_id, old.run_id);
  return null;
end $$;
create trigger run_tagged after insert or delete or update of tag on app.run_tag
  for each row execute function app.queue_tagged_run();

drop function app.find_runs_by_words(tsquery, timestamptz, uuid, integer);

-- Returns at most max_count runs of the current tenant with these words, newest first, after a page key (null: the
-- newest): whether all of the words are in the head, and the rank of the head for rank_query (null: 0). With in_head,
-- only runs whose head has all words. It runs as the owner, because row-level security prevents an index for operators
-- of text search. The statement is planned for the words at hand: runs with rare words are found by them, and those with
-- frequent words in the order of time. A scan of the table would have to read the words of all runs, which the planner
-- underestimates. A title counts most, then tags, the question and headings. Of two titles or two questions that have the
-- words, the shorter one ranks first.
create function app.find_runs_by_words(query tsquery, rank_query tsquery, in_head boolean, before_at timestamptz,
                                       before_id uuid, max_count integer)
returns table (run_id uuid, run_created_at timestamptz, is_in_head boolean, rank real)
language plpgsql stable security definer set search_path = pg_catalog, app, pg_temp set enable_seqscan = off as $$
begin
  return query execute format(
    'select s.run_id, s.run_created_at, s.head @@ $2,
            coalesce(4 * ts_rank(''{1, 1, 1, 1}'', ts_filter(s.head, ''{a}''), $6, 1)
                     + ts_rank(''{1, 1, 1, 1}'', ts_filter(s.head, ''{b}''), $6, 1)
                     + ts_rank(''{0.8, 0.05, 1, 1}'', ts_filter(s.head, ''{c,d}''), $6), 0)::real
       from app.run_search s
      where s.tenant_id = $1 and s.%I @@ $2 and (s.run_created_at, s.run_id) < ($3, $4)
      order by s.run_created_at desc, s.run_id desc limit $5', case when in_head then 'head' else 'words' end)
    using app.current_tenant_id(), query, coalesce(before_at, 'infinity'),
          coalesce(before_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), max_count, rank_query;
end $$;
