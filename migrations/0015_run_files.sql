-- Files that the code of a run has written, such as plots: by their hash, as they were.

create table app.run_file (
  run_id      uuid not null references app.run on delete cascade,
  sha256      bytea not null,
  name        text not null,                     -- path in the workspace
  tenant_id   uuid not null references app.tenant on delete cascade,
  media_type  text not null,                     -- told by the bytes, never by the name
  body        bytea not null,
  created_at  timestamptz not null default clock_timestamp(),
  primary key (run_id, sha256, name)
);
alter table app.run_file alter column body set storage external;   -- pictures do not get smaller

select app.protect('app.run_file'::regclass);
