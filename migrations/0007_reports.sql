-- Reports, citations, and the scores and ratings of runs.

create table app.report (
  run_id       uuid not null,
  version      integer not null,
  tenant_id    uuid not null references app.tenant on delete cascade,
  seq          bigint not null,                -- of the report's step
  status       text not null check (status in ('complete', 'partial')),
  stop_reason  text not null,
  body         jsonb not null,                 -- core.report.Report without the quotes
  created_at   timestamptz not null default clock_timestamp(),
  primary key (run_id, version),
  unique (tenant_id, run_id, version),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

create table app.citation (
  run_id          uuid not null,
  report_version  integer not null,
  number          integer not null,
  tenant_id       uuid not null,
  text_id         uuid,                        -- null after the source was erased
  source_id       uuid not null,
  start_char      integer not null,
  end_char        integer not null,
  quote           text not null,
  title           text not null,
  primary key (run_id, report_version, number),
  foreign key (tenant_id, run_id, report_version) references app.report (tenant_id, run_id, version) on delete cascade
);
create index citation_by_text on app.citation (text_id);

create table app.reward (                      -- a score or a rating; a changed one is a new version
  id              uuid primary key,
  tenant_id       uuid not null references app.tenant on delete cascade,
  run_id          uuid not null,
  target          text not null check (target in ('report', 'sentence', 'run', 'role_call')),
  sentence_id     text not null default '',    -- for target 'sentence'
  role_call_seq   bigint,                      -- for target 'role_call'
  report_version  integer,                     -- null if the run has no report
  scorer          text not null,               -- person:<name>, or the name of a scorer
  scorer_version  text not null default '1',
  version         integer not null,
  value           double precision,            -- -1 to 1; null for a correction alone, or if the scorer failed
  correction      text not null default '',
  failure         text not null default '',    -- why the scorer returned no value
  detail          jsonb not null default '{}',
  created_at      timestamptz not null default clock_timestamp(),
  unique (run_id, target, sentence_id, scorer, version),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

select app.protect_table(t) from unnest(array['app.report', 'app.citation', 'app.reward']::regclass[]) as t;
