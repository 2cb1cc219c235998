-- Sums over the rollouts of a group, stored when the group ends, so that a list of batches does not read all rollouts.

alter table app.rollout_group
  add column rollout_count     integer,            -- null while the group is open, like the other sums
  add column finalized_count   integer,
  add column infra_error_count integer,
  add column reward_count      integer,            -- rollouts with a reward
  add column reward_sum        double precision;

-- No rollout of an ended group changes, so the sums stay valid.
create function app.sum_rollouts(ended_group_id uuid)
returns table (rollout_count bigint, finalized_count bigint, infra_error_count bigint, reward_count bigint,
               reward_sum double precision)
language sql stable
begin atomic
  select count(*), count(*) filter (where o.finalized_at is not null),
         count(*) filter (where o.outcome = 'infra_error'), count(o.reward), coalesce(sum(o.reward), 0)
    from app.rollout o where o.group_id = ended_group_id;
end;

create function app.set_group_sums() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  select s.* into new.rollout_count, new.finalized_count, new.infra_error_count, new.reward_count, new.reward_sum
    from app.sum_rollouts(new.id) as s;
  return new;
end $$;
create trigger group_ended before update of state on app.rollout_group for each row
  when (old.state = 'open' and new.state <> 'open') execute function app.set_group_sums();

update app.rollout_group g
   set rollout_count = s.rollout_count, finalized_count = s.finalized_count, infra_error_count = s.infra_error_count,
       reward_count = s.reward_count, reward_sum = s.reward_sum
  from (select o.group_id, count(*) as rollout_count, count(o.finalized_at) as finalized_count,
               count(*) filter (where o.outcome = 'infra_error') as infra_error_count, count(o.reward) as reward_count,
               coalesce(sum(o.reward), 0) as reward_sum
          from app.rollout o group by o.group_id) as s
 where g.id = s.group_id and g.state <> 'open';

-- A batch's groups with their sums, read from the index alone.
drop index app.rollout_group_of_batch;
create index rollout_group_of_batch on app.rollout_group (batch_id, id)
  include (state, rollout_count, finalized_count, infra_error_count, reward_count, reward_sum);
create index rollout_group_open on app.rollout_group (batch_id, id) where state = 'open';
