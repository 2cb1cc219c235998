-- Money: the daily spend of tenants, and reservations for calls in progress.

create table app.daily_spend (
  tenant_id     uuid not null references app.tenant on delete cascade,
  day           date not null,
  reserved_usd  numeric(12, 6) not null default 0,
  used_usd      numeric(12, 6) not null default 0,
  primary key (tenant_id, day)
);

create table app.reservation (
  run_id        uuid not null,
  fence         bigint not null,               -- of the claim that reserved; below the run's if that claim was lost
  day           date not null,                 -- the day whose limit the money counts against
  tenant_id     uuid not null references app.tenant on delete cascade,
  reserved_usd  numeric(12, 6) not null check (reserved_usd >= 0),
  primary key (run_id, fence, day),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

select app.protect_table(t) from unnest(array['app.daily_spend', 'app.reservation']::regclass[]) as t;

-- Deleting a reservation, for any reason, returns its money to the day. A row is deleted once, so the money is returned
-- once.
create function app.return_reservation() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  update app.daily_spend set reserved_usd = greatest(0, reserved_usd - old.reserved_usd)
   where tenant_id = old.tenant_id and day = old.day;
  return null;
end $$;
create trigger reservation_deleted after delete on app.reservation
  for each row when (old.reserved_usd > 0) execute function app.return_reservation();

-- A reservation belongs to one epoch of one claim. When either has ended, its call can no longer be charged. A claim
-- does not release the reservations of the claim that was lost before it: all runs of a tenant share one row per day,
-- and the claim would wait for that row while it locks the rows of other runs and tenants. The worker releases them
-- afterwards in a separate transaction.
create function app.release_reservations() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  delete from app.reservation where run_id = new.id;
  return null;
end $$;
create trigger run_released after update of status, epoch on app.run
  for each row
  when (new.fence = old.fence and (old.status, old.epoch) is distinct from (new.status, new.epoch))
  execute function app.release_reservations();
