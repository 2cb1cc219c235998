-- Neither many runs of one kind nor those that go on keep what is due of all others from being removed. Each sweep
-- reads little more than it returns: its times are the statement's, which an index can be asked for.

-- An ended rollout that is done again whole when its worker is lost mostly has no checkpoint, and nothing to remove.
create function app.note_without_checkpoints() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  if not exists (select from app.checkpoint c where c.run_id = new.id) then
    new.pruned_at := clock_timestamp();
  end if;
  return new;
end $$;
create trigger run_without_checkpoints before update of ended_at on app.run
  for each row when (new.durability = 'exit' and new.ended_at is not null and new.pruned_at is null)
  execute function app.note_without_checkpoints();
update app.run r set pruned_at = clock_timestamp()
 where r.durability = 'exit' and r.ended_at is not null and r.pruned_at is null
   and not exists (select from app.checkpoint c where c.run_id = r.id);

-- Ended runs whose checkpoints are due, of each durability the first to end first, and of both in turns.
create or replace function app.sweep_ended(older interval, most integer)
returns table (run uuid, tenant uuid) language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  select due.id, due.tenant_id
    from (select r.*, row_number() over (order by r.ended_at) as nth
            from (select r.id, r.tenant_id, r.ended_at from app.run r
                   where r.durability = 'sync' and r.ended_at < statement_timestamp() - older and r.pruned_at is null
                   order by r.ended_at limit most) as r
          union all
          select r.*, row_number() over (order by r.ended_at) as nth
            from (select r.id, r.tenant_id, r.ended_at from app.run r
                   where r.durability = 'exit' and r.ended_at is not null and r.pruned_at is null
                   order by r.ended_at limit most) as r) as due
   order by due.nth limit most
$$;

-- Up to `most` runs that ended long ago and have old files, the one with the oldest file first. The next one is looked
-- for from where the last one was found. Whether its run has ended is asked for each file: no plan begins with runs.
create or replace function app.sweep_run_files(older interval, most integer)
returns table (run uuid, tenant uuid) language sql security definer set search_path = pg_catalog, app, pg_temp as $$
  with recursive due(created_at, run_id, tenant_id, seen) as (
    (select f.created_at, f.run_id, f.tenant_id, array[f.run_id]
       from app.run_file f
      where f.created_at < statement_timestamp() - older
        and (select r.ended_at < statement_timestamp() - older from app.run r where r.id = f.run_id)
      order by f.created_at limit least(most, 1))
    union all
    select next.*
      from due d
     cross join lateral (
       select f.created_at, f.run_id, f.tenant_id, d.seen || f.run_id
         from app.run_file f
        where f.created_at >= d.created_at and f.created_at < statement_timestamp() - older
          and f.run_id <> all (d.seen)
          and (select r.ended_at < statement_timestamp() - older from app.run r where r.id = f.run_id)
        order by f.created_at limit 1) as next
     where cardinality(d.seen) < most)
  select run_id, tenant_id from due
$$;
