-- The search index in few rows: a row holds the postings of many terms and texts, instead of those of one term and text. Postings that are already stored are converted, so everything that could be found stays found.

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
  bucket_count   integer not null,
  primary key (tenant_id, segment)
);

alter table app.extracted_text add column first_passage integer;  -- number of its first passage; null if it has none
create unique index extracted_text_by_passage on app.extracted_text (tenant_id, first_passage);
-- Copies of its text's numbers, so that a search reads the texts in scope from one table.
alter table app.source add column first_passage integer, add column passage_count integer not null default 0;

create table app.posting_bucket (              -- the postings of those terms of a segment whose hash is the same
  tenant_id  uuid not null,
  segment    integer not null,
  bucket     integer not null,                 -- hash modulo bucket_count; -1 - hash for a term with many passages
  body       bytea not null,                   -- see backend/offing/storage/postings.py
  primary key (tenant_id, segment, bucket),
  foreign key (tenant_id, segment) references app.index_segment on delete cascade
);
-- A search reads whole bodies, and compression makes them hardly smaller.
alter table app.posting_bucket alter column body set storage external;

select app.protect_table(t) from unnest(array['app.index_counter', 'app.index_segment', 'app.posting_bucket']::regclass[]) as t;

-- Convert what is stored ---------------------------------------------------------------------------------------------

update app.extracted_text a set first_passage = n.first_passage
  from (select p.text_id, sum(count(*)) over (partition by p.tenant_id order by p.text_id) - count(*) as first_passage
          from app.passage p group by p.tenant_id, p.text_id) n
 where a.id = n.text_id;

update app.source s set first_passage = a.first_passage, passage_count = n.passage_count
  from app.extracted_text a join (select text_id, count(*) as passage_count from app.passage group by 1) n on n.text_id = a.id
 where s.tenant_id = a.tenant_id and s.text_id = a.id;

insert into app.index_counter (tenant_id, next_passage, next_segment)
select a.tenant_id, max(a.first_passage + p.ordinal) + 1, max(a.first_passage) / 16384 + 2
  from app.extracted_text a join app.passage p on p.text_id = a.id group by 1;

insert into app.index_segment (tenant_id, segment, first_passage, end_passage, bucket_count)
select n.tenant_id, n.segment, min(n.passage), max(n.passage) + 1, 1
  from (select a.tenant_id, a.first_passage / 16384 + 1 as segment, a.first_passage + p.ordinal as passage
          from app.extracted_text a join app.passage p on p.text_id = a.id) n
 group by 1, 2;

create temporary table term_entries on commit drop as
select p.tenant_id, s.segment, p.term, ('x0' || substr(md5(p.term), 1, 7))::bit(32)::integer as hash,
       count(*) as entry_count,
       string_agg(substring(int4send(a.first_passage + e.ordinal - s.first_passage)
                            from case when s.end_passage - s.first_passage > 65536 then 1 else 3 end)
                  || set_byte('\x00', 0, least(255, greatest(1, round(e.weight * 255)))::integer),
                  '' order by a.first_passage + e.ordinal) as entries
  from app.posting p join app.extracted_text a on a.id = p.text_id
       join app.index_segment s on s.tenant_id = a.tenant_id and s.segment = a.first_passage / 16384 + 1
       cross join lateral unnest(p.passage_ordinals, p.weights) as e(ordinal, weight)
 group by 1, 2, 3;

update app.index_segment s set bucket_count = t.bucket_count
  from (select tenant_id, segment, greatest(1, sum(octet_length(term) + octet_length(entries) + 5) / 1000)
               as bucket_count
          from term_entries group by 1, 2) t
 where t.tenant_id = s.tenant_id and t.segment = s.segment;

insert into app.posting_bucket (tenant_id, segment, bucket, body)
select t.tenant_id, t.segment,
       case when octet_length(t.entries) > 500 then -1 - t.hash else t.hash % s.bucket_count end as bucket,
       int4send(octet_length(string_agg(t.term, E'\n'))) || convert_to(string_agg(t.term, E'\n' order by t.term), 'UTF8')
       || string_agg(int4send(t.entry_count::integer), '' order by t.term)
       || string_agg(t.entries, '' order by t.term)
  from term_entries t join app.index_segment s on s.tenant_id = t.tenant_id and s.segment = t.segment
 group by t.tenant_id, t.segment, bucket;

drop table app.posting;

-- Bytes that are the extracted text itself are stored once -------------------------------------------------------------

alter table app.snapshot alter column body drop not null;  -- null: the body of its text whose hash is the same

update app.snapshot n set body = null
 where exists (select from app.extracted_text a
                where a.tenant_id = n.tenant_id and a.snapshot_sha256 = n.sha256 and a.sha256 = n.sha256);
