-- Collecting rollouts: what a batch asked for, when an ended rollout is due to be settled, and lists that show none.

-- Rollouts are many: lists of what people asked must not wade through them --------------------------------------------

alter table app.thread add column kind text not null default 'ask' check (kind in ('ask', 'rollout'));
update app.thread t set kind = 'rollout' from app.run r where r.thread_id = t.id and r.kind = 'rollout';
drop index app.thread_by_time;
create index thread_by_time on app.thread (tenant_id, kind, created_at desc, id desc);
create index run_asked on app.run (tenant_id, created_at desc, id desc) where kind = 'ask';
create index run_of_thread on app.run (thread_id);

-- Batches ---------------------------------------------------------------------------------------------------------

alter table app.batch
  add column groups integer not null default 0,   -- how many were asked for; fewer exist while they are being made
  add column cancelled_at timestamptz,
  add column idempotency_key text,
  add column request_sha256 text,
  add unique (tenant_id, idempotency_key);
update app.batch b set groups = (select count(*) from app.rollout_group g where g.batch_id = b.id);
create index batch_by_time on app.batch (tenant_id, created_at desc, id desc);

alter table app.rollout_group add unique (batch_id, task_id);

-- The tenant is in it because the planner would else read all of a tenant's rollouts beside it, until there are statistics.
alter table app.rollout drop constraint rollout_group_id_member_attempt_key,
  add constraint rollout_of_group unique (group_id, tenant_id, member, attempt);

-- When an ended rollout is looked at: at once, and again after a scorer's failure -------------------------------------

alter table app.rollout add column due_at timestamptz;   -- null: its run has not ended
drop index app.rollout_unsettled;
create index rollout_due on app.rollout (due_at) where settled_at is null and due_at is not null;

create function app.rollout_ended() returns trigger language plpgsql as $$
begin
  update app.rollout set due_at = new.ended_at where run_id = new.id and settled_at is null;
  return null;
end $$;
create trigger run_ended after update of ended_at on app.run for each row
  when (new.kind = 'rollout' and old.ended_at is null and new.ended_at is not null)
  execute function app.rollout_ended();

update app.rollout o set due_at = r.ended_at from app.run r where r.id = o.run_id and o.settled_at is null;

create or replace function app.sweep_rollouts(forgotten_after interval, most integer)
returns table (run uuid, tenant uuid) language sql security definer set search_path = pg_catalog, app as $$
  select run_id, tenant_id from app.rollout
   where settled_at is null and due_at < clock_timestamp() - forgotten_after
   order by due_at limit most
$$;
