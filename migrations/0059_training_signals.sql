-- What people said about runs, and whether it may be learned from. Ratings, edits of a report and input responses are
-- rows already; here are the answers that people corrected, and the decisions about single runs.

create table app.answer_correction (           -- the right answer of a run, as a person says it; rows are not replaced
  id              uuid primary key,
  tenant_id       uuid not null references app.tenant on delete cascade,
  run_id          uuid not null,
  report_version  integer,                     -- the version that the person read; null if the run has no report
  answer          text not null check (char_length(answer) between 1 and 8000),
  text_origin     text not null check (text_origin in ('person', 'model', 'document')),  -- who wrote the words
  given_by        text not null,               -- name of the key or session
  created_at      timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);
create index answer_correction_of_run on app.answer_correction (tenant_id, run_id, created_at);

create table app.run_training_consent (        -- a run without a row follows the tenant's training_opt_in
  run_id      uuid primary key,
  tenant_id   uuid not null,
  is_allowed  boolean not null,
  decided_by  text not null,
  decided_at  timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

select app.protect_table(t) from unnest(array['app.answer_correction', 'app.run_training_consent']::regclass[]) as t;

-- The decision about a run, or about the run that it is a fork of, since a fork contains what its origin did. Null means
-- that nobody decided.
create function app.decided_training_consent(of_run uuid) returns boolean
language sql stable set search_path = pg_catalog, app, pg_temp as $$
  with recursive lineage(run_id, depth) as (
    select of_run, 0
    union all
    select r.forked_from_id, l.depth + 1 from lineage l join app.run r on r.id = l.run_id
     where r.forked_from_id is not null)
  select c.is_allowed from lineage join app.run_training_consent c using (run_id) order by depth limit 1
$$;

-- Whether an existing run may be learned from: as decided for the run, else as the tenant decided. A deleted run may not.
create function app.may_learn_from(of_run uuid) returns boolean
language sql stable set search_path = pg_catalog, app, pg_temp as $$
  select coalesce((select coalesce(app.decided_training_consent(r.id), t.training_opt_in)
                     from app.run r join app.tenant t on t.id = r.tenant_id
                    where r.id = of_run), false)
$$;
