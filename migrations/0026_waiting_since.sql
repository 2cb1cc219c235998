-- Since when a run waits: for a worker, for what `waiting_for` names, or for a person to resume it.

alter table app.run add column waiting_since timestamptz, add column waited_seq bigint;
update app.run set waiting_since = queued_at where status in ('queued', 'waiting', 'paused');
alter table app.run alter column waiting_since set default clock_timestamp();
comment on column app.run.waiting_since is 'when its wait began; while it runs, when its last one did; null: it has ended';
comment on column app.run.waited_seq is 'next_seq when its last wait ended';

-- A worker that looks at a waiting run, finds that it still waits and appends nothing, ends no wait.
create function app.note_waiting() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.status = 'running' then
    new.waited_seq := new.next_seq;
  elsif new.status in ('done', 'failed', 'cancelled', 'dead') then
    new.waiting_since := null;
  elsif new.status = 'paused' or old.status <> 'running' or old.waiting_since is null
        or new.next_seq > coalesce(old.waited_seq, 0) then
    new.waiting_since := clock_timestamp();
  end if;
  return new;
end $$;
create trigger run_waits before update of status on app.run
  for each row when (old.status is distinct from new.status) execute function app.note_waiting();
