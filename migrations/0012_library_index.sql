-- The search index in few rows: one row per term and segment, which holds the postings of many texts, instead of one row
-- per term and text. Postings that are already stored are converted, so everything that could be found stays found.

-- The next numbers that a tenant's passages and segments get. A transaction that writes the index holds this row's lock.
create table app.index_counter (
  tenant_id     uuid primary key references app.tenant on delete cascade,
  next_passage  integer not null,
  next_segment  integer not null
);

-- A range of passage numbers whose postings are stored together. Segments of a tenant do not overlap.
create table app.index_segment (
  tenant_id      uuid not null references app.tenant on delete cascade,
  segment        integer not null,
  first_passage  integer not null,
  end_passage    integer not null,             -- excluded
  primary key (tenant_id, segment)
);

alter table app.extracted_text add column first_passage integer;  -- number of its first passage; null if it has none
create unique index extracted_text_by_passage on app.extracted_text (tenant_id, first_passage);

alter table app.posting rename to posting_of_text;
alter table app.posting_of_text rename constraint posting_pkey to posting_of_text_pkey;

create table app.posting (                     -- the passages of one segment that contain one term
  tenant_id  uuid not null,
  segment    integer not null,
  term       text not null collate "C",
  entries    bytea not null,                   -- 5 bytes per passage: number (4, big-endian, ascending) and weight (1)
  primary key (tenant_id, segment, term),
  foreign key (tenant_id, segment) references app.index_segment on delete cascade
);
-- Entries hardly become smaller by compression, and a search reads all of them.
alter table app.posting alter column entries set storage external;

select app.protect_table(t) from unnest(array['app.index_counter', 'app.index_segment', 'app.posting']::regclass[]) as t;

-- Convert what is stored ---------------------------------------------------------------------------------------------

update app.extracted_text a set first_passage = n.first_passage
  from (select p.text_id, sum(count(*)) over (partition by p.tenant_id order by p.text_id) - count(*) as first_passage
          from app.passage p group by p.tenant_id, p.text_id) n
 where a.id = n.text_id;

insert into app.index_counter (tenant_id, next_passage, next_segment)
select a.tenant_id, max(a.first_passage + p.ordinal) + 1, max(a.first_passage) / 16384 + 2
  from app.extracted_text a join app.passage p on p.text_id = a.id group by 1;

insert into app.index_segment (tenant_id, segment, first_passage, end_passage)
select a.tenant_id, a.first_passage / 16384 + 1, min(a.first_passage), max(a.first_passage + p.ordinal) + 1
  from app.extracted_text a join app.passage p on p.text_id = a.id group by 1, 2;

insert into app.posting (tenant_id, segment, term, entries)
select p.tenant_id, a.first_passage / 16384 + 1, p.term,
       string_agg(int4send(a.first_passage + e.ordinal)
                  || set_byte('\x00', 0, least(254, greatest(1, round(e.weight * 255)))::integer),
                  '' order by a.first_passage + e.ordinal)
  from app.posting_of_text p join app.extracted_text a on a.id = p.text_id
       cross join lateral unnest(p.passage_ordinals, p.weights) as e(ordinal, weight)
 where a.first_passage is not null
 group by 1, 2, 3;

drop table app.posting_of_text;

-- Bytes that are the extracted text itself are stored once -------------------------------------------------------------

alter table app.snapshot alter column body drop not null;  -- null: the body of its text whose hash is the same

update app.snapshot n set body = null
 where exists (select from app.extracted_text a
                where a.tenant_id = n.tenant_id and a.snapshot_sha256 = n.sha256 and a.sha256 = n.sha256);
