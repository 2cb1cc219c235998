-- Reports with their citations, and what people said about them.

create table app.report (
  run_id      uuid not null references app.run on delete cascade,
  version     integer not null,
  tenant_id   uuid not null references app.tenant on delete cascade,
  seq         bigint not null,                 -- its step
  status      text not null check (status in ('complete', 'partial')),
  reason      text not null,
  body        jsonb not null,                  -- core.report.Report without the quotes
  created_at  timestamptz not null default clock_timestamp(),
  primary key (run_id, version)
);

create table app.citation (
  run_id       uuid not null,
  version      integer not null,
  number       integer not null,
  tenant_id    uuid not null,
  artefact_id  uuid,                           -- null: the source was erased
  source_id    uuid not null,
  start_at     integer not null,
  end_at       integer not null,
  quote        text not null,
  title        text not null,
  primary key (run_id, version, number),
  foreign key (run_id, version) references app.report on delete cascade
);
create index citation_of_artefact on app.citation (artefact_id);

create table app.reward (                      -- a score with its origin; a new opinion is a new version
  id          uuid primary key,
  tenant_id   uuid not null references app.tenant on delete cascade,
  run_id      uuid not null references app.run on delete cascade,
  target      text not null check (target in ('report', 'claim')),
  claim       text not null default '',        -- sentence id, for target claim
  report      integer not null,                -- report version
  scorer      text not null,                   -- person:<name>, or a scorer and its version
  version     integer not null,
  value       double precision,                -- -1 to 1; null: only a correction
  correction  text not null default '',
  created_at  timestamptz not null default clock_timestamp(),
  unique (run_id, target, claim, scorer, version)
);

select app.protect(t) from unnest(array['app.report', 'app.citation', 'app.reward']::regclass[]) as t;
