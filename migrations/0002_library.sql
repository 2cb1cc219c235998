-- The library: bytes once by hash, the text extracted from them as an artefact of its own, passages, and their index.

create table app.snapshot (
  tenant_id   uuid not null references app.tenant on delete cascade,
  sha256      bytea not null,
  media_type  text not null,
  body        bytea not null,
  created_at  timestamptz not null default clock_timestamp(),
  primary key (tenant_id, sha256)
);

create table app.artefact (                    -- text extracted from a snapshot by one version of one extractor
  id          uuid primary key,
  tenant_id   uuid not null references app.tenant on delete cascade,
  snapshot    bytea not null,
  extractor   text not null,                   -- name and version
  sha256      bytea not null,                  -- of the text in UTF-8
  body        text not null,
  length      integer not null,                -- code points
  created_at  timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, snapshot) references app.snapshot on delete cascade,
  unique (tenant_id, snapshot, extractor)
);

create table app.source (                      -- a document as a person knows it
  id           uuid primary key,
  tenant_id    uuid not null references app.tenant on delete cascade,
  collection   text not null default '',       -- '': uploaded one by one; else the folder it came from
  name         text not null,                  -- path within the collection, or the file's name
  title        text not null,
  artefact_id  uuid not null references app.artefact on delete cascade,
  added_at     timestamptz not null default clock_timestamp(),
  unique (tenant_id, collection, name)
);
create index source_by_time on app.source (tenant_id, added_at desc, id desc);
create index source_of_artefact on app.source (artefact_id);

select app.protect(t) from unnest(array['app.snapshot', 'app.artefact', 'app.source']::regclass[]) as t;
