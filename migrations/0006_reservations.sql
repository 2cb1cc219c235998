-- Money set aside for calls in flight, so that a worker's loss leaves nothing reserved for ever.

alter table app.run add column reserved_usd numeric(12, 6) not null default 0;
