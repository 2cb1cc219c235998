-- Passages of the library's texts, and the index that searches them.
-- Postings are plain rows found by plain equality: row-level security admits no other operator to an index.

alter table app.artefact alter column body set storage external;    -- a stretch of it is read without unpacking all
alter table app.artefact add column title text not null default '';  -- as the document calls itself; '': it does not
alter table app.artefact add column digest integer not null default 0;    -- version of its passages; 0: none yet
alter table app.artefact add column passages integer not null default 0;  -- how many

alter table app.source add column gone_at timestamptz;               -- no longer in its folder; null: it is there

create table app.passage (
  artefact_id  uuid not null references app.artefact on delete cascade,
  ordinal      integer not null,               -- from 0
  tenant_id    uuid not null,
  start_at     integer not null,               -- code points of artefact.body, end excluded
  end_at       integer not null,
  heading      text not null,                  -- path of headings, outermost first; '': none
  primary key (artefact_id, ordinal)
);

create table app.posting (                     -- where one term stands in one text
  tenant_id    uuid not null,
  term         text not null collate "C",
  artefact_id  uuid not null references app.artefact on delete cascade,
  passages     integer[] not null,             -- ordinals, ascending
  weights      real[] not null,                -- what each adds to a score, before the term's rarity
  primary key (tenant_id, term, artefact_id)
);
create index posting_of_artefact on app.posting (artefact_id);

create table app.source_past (                 -- what a source held before it was replaced; goes when it is erased
  source_id    uuid not null references app.source on delete cascade,
  artefact_id  uuid not null references app.artefact on delete cascade,
  tenant_id    uuid not null,
  replaced_at  timestamptz not null default clock_timestamp(),
  primary key (source_id, artefact_id)
);
create index source_past_of_artefact on app.source_past (artefact_id);

select app.protect(t) from unnest(array['app.passage', 'app.posting', 'app.source_past']::regclass[]) as t;
