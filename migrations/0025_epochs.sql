-- What a claim writes ends with the epoch in which it was begun, and so does what it has set aside.

-- A worker that reads its journal again, because Postgres was away, raises the epoch in the same transaction. Whatever
-- it had sent before and the server has not carried out by then is refused like a write of an earlier claim.
alter table app.run add column epoch integer not null default 0;

create function app.begin_epochs() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  new.epoch := 0;
  return new;
end $$;
create trigger run_claimed before update of fence on app.run
  for each row when (new.fence <> old.fence) execute function app.begin_epochs();

-- Money set aside for calls in flight, by the day from whose cap it was taken.
create table app.reservation (
  run_id     uuid not null,
  day        date not null,
  tenant_id  uuid not null references app.tenant on delete cascade,
  usd        numeric(12, 6) not null check (usd >= 0),
  primary key (run_id, day),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

select app.protect('app.reservation');

-- The day has back what is deleted here, whoever deletes it and for whatever reason: once, because a row goes once.
create function app.give_back_reservation() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  update app.spend set reserved = greatest(0, reserved - old.usd) where tenant_id = old.tenant_id and day = old.day;
  return null;
end $$;
create trigger reservation_given_back after delete on app.reservation
  for each row when (old.usd > 0) execute function app.give_back_reservation();

-- A reservation is for a call of one epoch of one claim; nobody hears of that call any more when either is over.
create function app.release_reservations() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  delete from app.reservation where run_id = new.id;
  return null;
end $$;
create trigger run_released after update of status, fence, epoch on app.run
  for each row when ((old.status, old.fence, old.epoch) is distinct from (new.status, new.fence, new.epoch))
  execute function app.release_reservations();

-- Workers stand still while this runs, so whatever is set aside is for calls that are over.
update app.spend set reserved = 0 where reserved <> 0;
alter table app.run drop column reserved_usd;
