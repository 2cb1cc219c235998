-- Runs that a run has started: each has a thread of its own, is in no list, and ends with its parent.

alter table app.thread drop constraint thread_kind_check,
  add constraint thread_kind_check check (kind in ('ask', 'rollout', 'child'));
alter table app.run drop constraint run_kind_check,
  add constraint run_kind_check check (kind in ('ask', 'rollout', 'child'));

create table app.child_run (
  run_id        uuid primary key references app.run on delete cascade,
  tenant_id     uuid not null,
  parent_id     uuid not null references app.run on delete cascade,
  superstep     integer not null,              -- with path and ordinal: the parent's call that asked for it
  path          text not null,
  ordinal       integer not null,
  depth         integer not null check (depth > 0),
  collected_at  timestamptz,                   -- null: the parent has not taken up what it brought back
  unique (parent_id, superstep, path, ordinal)
);

select app.protect('app.child_run');

-- The last of a call's children to end queues the parent, in its own transaction. The parent's row is locked before the
-- others are looked at, as the parent does when it begins to wait: one of the two sees the other.
create function app.child_run_ended() returns trigger language plpgsql as $$
declare
  child app.child_run;
begin
  select * into child from app.child_run where run_id = new.id;
  if not found then
    return null;
  end if;
  perform from app.run where id = child.parent_id for update;
  update app.run
     set status = 'queued', waiting_for = null, not_before = null, queued_at = clock_timestamp(),
         published_at = clock_timestamp()
   where id = child.parent_id and status = 'waiting'
     and not exists (select from app.child_run c join app.run r on r.id = c.run_id
                      where c.parent_id = child.parent_id and c.superstep = child.superstep and c.path = child.path
                        and r.ended_at is null);
  return null;
end $$;
create trigger child_run_ended after update of ended_at on app.run for each row
  when (new.kind = 'child' and old.ended_at is null and new.ended_at is not null)
  execute function app.child_run_ended();

-- Erasing a run erases what it started. A child that is erased by itself has no thread left to erase.
create function app.child_run_forgotten() returns trigger language plpgsql as $$
begin
  delete from app.thread t using app.run r where r.id = old.run_id and t.id = r.thread_id;
  return null;
end $$;
create trigger child_run_forgotten after delete on app.child_run
  for each row execute function app.child_run_forgotten();

-- Children that go on although their parent has ended: whoever ended it was cut off before it could tell them.
create function app.sweep_child_runs(most integer)
returns table (run uuid, tenant uuid) language sql security definer set search_path = pg_catalog, app as $$
  select c.run_id, c.tenant_id
    from app.child_run c join app.run r on r.id = c.run_id join app.run p on p.id = c.parent_id
   where r.ended_at is null and p.ended_at is not null and r.cancel_mode is distinct from 'discard'
   limit most
$$;
create index run_child_open on app.run (id) where kind = 'child' and ended_at is null;
