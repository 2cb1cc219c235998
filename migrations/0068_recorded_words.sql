-- Reads that take as many statements for many rows as for few.

-- Whether each of these runs may be learned from: as decided for the run, or for the run that it is a fork of, since a fork
-- contains what its origin did, or else as the tenant decided. Runs that do not exist are left out.
create function app.list_learning_consent(of_runs uuid[]) returns table (run_id uuid, may_learn boolean)
language sql stable set search_path = pg_catalog, app, pg_temp as $$
  with recursive lineage(run_id, ancestor_id, depth) as (
    select r.id, r.id, 0 from app.run r where r.id = any(of_runs)
    union all
    select l.run_id, r.forked_from_id, l.depth + 1 from lineage l join app.run r on r.id = l.ancestor_id
     where r.forked_from_id is not null),
  decided as (
    select distinct on (l.run_id) l.run_id, c.is_allowed
      from lineage l join app.run_training_consent c on c.run_id = l.ancestor_id order by l.run_id, l.depth)
  select r.id, coalesce(d.is_allowed, t.training_opt_in)
    from app.run r join app.tenant t on t.id = r.tenant_id left join decided d on d.run_id = r.id
   where r.id = any(of_runs)
$$;

create or replace function app.may_learn_from(of_run uuid) returns boolean
language sql stable set search_path = pg_catalog, app, pg_temp as $$
  select coalesce((select c.may_learn from app.list_learning_consent(array[of_run]) c), false)
$$;

-- The words of the texts of recorded web pages, stored when a search first needs them. They are found by equality, the
-- only operator that row-level security lets an index use.
create table app.recorded_word (
  tenant_id  uuid not null,
  word       text not null collate "C",        -- a word, or the mark of a text whose words are stored
  text_id    uuid not null,
  primary key (tenant_id, word, text_id),
  foreign key (tenant_id, text_id) references app.extracted_text (tenant_id, id) on delete cascade
);
create index recorded_word_of_text on app.recorded_word (text_id);

select app.protect_table('app.recorded_word');
