-- The document library: stored bytes, extracted texts, sources, passages and the search index.

create table app.snapshot (                    -- bytes, stored once per hash
  tenant_id   uuid not null references app.tenant on delete cascade,
  sha256      bytea not null,
  media_type  text not null,
  body        bytea not null,
  created_at  timestamptz not null default clock_timestamp(),
  primary key (tenant_id, sha256)
);

create table app.extracted_text (              -- text that one extractor version made of a snapshot
  id               uuid primary key,
  tenant_id        uuid not null references app.tenant on delete cascade,
  snapshot_sha256  bytea not null,
  extractor        text not null,              -- name and version
  sha256           bytea not null,             -- of the text in UTF-8
  title            text not null default '',   -- from the document; '' if it has none
  body             text not null,
  length_chars     integer not null,           -- code points
  index_version    integer not null default 0, -- version of its passages; 0 means none yet
  passage_count    integer not null default 0,
  created_at       timestamptz not null default clock_timestamp(),
  unique (tenant_id, id),
  unique (tenant_id, snapshot_sha256, extractor),
  foreign key (tenant_id, snapshot_sha256) references app.snapshot on delete cascade
);
-- Uncompressed, so that a range can be read without decompressing the whole text.
alter table app.extracted_text alter column body set storage external;

create table app.source (                      -- a document as a person knows it
  id           uuid primary key,
  tenant_id    uuid not null references app.tenant on delete cascade,
  collection   text not null default '',       -- '' for single uploads, otherwise the imported folder
  name         text not null,                  -- path within the collection, or the file name
  title        text not null,
  text_id      uuid not null,
  added_at     timestamptz not null default clock_timestamp(),
  removed_at   timestamptz,                    -- when the file was missing from its folder; null if it is present
  unique (tenant_id, id),
  unique (tenant_id, collection, name),
  foreign key (tenant_id, text_id) references app.extracted_text (tenant_id, id) on delete cascade
);
create index source_by_time on app.source (tenant_id, added_at desc, id desc);
create index source_by_text on app.source (text_id);

create table app.source_history (              -- earlier texts of a source, deleted with the source
  source_id    uuid not null,
  text_id      uuid not null,
  tenant_id    uuid not null,
  replaced_at  timestamptz not null default clock_timestamp(),
  primary key (source_id, text_id),
  foreign key (tenant_id, source_id) references app.source (tenant_id, id) on delete cascade,
  foreign key (tenant_id, text_id) references app.extracted_text (tenant_id, id) on delete cascade
);
create index source_history_by_text on app.source_history (text_id);

create table app.passage (
  text_id     uuid not null,
  ordinal     integer not null,                -- from 0
  tenant_id   uuid not null,
  start_char  integer not null,                -- code points of extracted_text.body, end excluded
  end_char    integer not null,
  heading     text not null,                   -- path of headings, outermost first; '' if there is none
  primary key (text_id, ordinal),
  foreign key (tenant_id, text_id) references app.extracted_text (tenant_id, id) on delete cascade
);

-- Postings are ordinary rows that are found by equality, the only operator that row-level security lets an index use.
create table app.posting (                     -- the passages of one text that contain one term
  tenant_id         uuid not null,
  term              text not null collate "C",
  text_id           uuid not null,
  passage_ordinals  integer[] not null,        -- ascending
  weights           real[] not null,           -- score of each passage before the rarity of the term is applied
  primary key (tenant_id, term, text_id),
  foreign key (tenant_id, text_id) references app.extracted_text (tenant_id, id) on delete cascade
);
create index posting_by_text on app.posting (text_id);

select app.protect_table(t) from unnest(array['app.snapshot', 'app.extracted_text', 'app.source', 'app.source_history',
  'app.passage', 'app.posting']::regclass[]) as t;
