-- Lists of runs by cost and by duration. The totals of ended runs are apart from the runs, because an index of columns
-- that each step of a run changes would make every step write all indexes of the run.

create table app.ended_run_usage (
  run_id       uuid primary key,
  tenant_id    uuid not null,
  cost_micros  bigint not null,                -- millionths of a US dollar
  work_ms      bigint not null,
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index ended_run_usage_by_cost on app.ended_run_usage (tenant_id, cost_micros desc, run_id desc);
create index ended_run_usage_by_work on app.ended_run_usage (tenant_id, work_ms desc, run_id desc);

select app.protect_table('app.ended_run_usage');

insert into app.ended_run_usage (run_id, tenant_id, cost_micros, work_ms)
select id, tenant_id, (cost_usd * 1000000)::bigint, (work_seconds * 1000)::bigint
  from app.run where kind = 'interactive' and ended_at is not null;

create function app.store_ended_run_usage() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  insert into app.ended_run_usage (run_id, tenant_id, cost_micros, work_ms)
  values (new.id, new.tenant_id, (new.cost_usd * 1000000)::bigint, (new.work_seconds * 1000)::bigint)
  on conflict (run_id) do update set cost_micros = excluded.cost_micros, work_ms = excluded.work_ms;
  return null;
end $$;
create trigger run_usage_final after insert or update of ended_at, cost_usd, work_seconds on app.run
  for each row when (new.kind = 'interactive' and new.ended_at is not null) execute function app.store_ended_run_usage();
