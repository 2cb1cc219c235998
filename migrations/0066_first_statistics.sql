-- Statistics of tables that have just got their first rows.

-- A statement that is prepared while a table is empty keeps the plan for an empty table until the table is analyzed.
-- Without statistics, each index that begins with the tenant seems to be as good as the one for the row's id, so that
-- such a plan may read all runs of a tenant to find one. Autovacuum analyzes a table only after a minute or later.
--
-- Analyzes the tables that have no statistics and some pages, and returns their number. A table of a few rows is left
-- alone, because its statistics would say that each row has a tenant of its own. One process does so at a time.
create function app.analyze_new_tables() returns integer
language plpgsql security definer set search_path = pg_catalog, app, pg_temp as $$
declare
  new_table regclass;
  analyzed integer := 0;
begin
  if not pg_try_advisory_xact_lock(hashtext('app.analyze_new_tables')) then
    return 0;
  end if;
  for new_table in
    select c.oid from pg_class c
     where c.relnamespace = 'app'::regnamespace and c.relkind = 'r'
       and not exists (select from pg_statistic s where s.starelid = c.oid)
       and pg_relation_size(c.oid) >= 4 * current_setting('block_size')::integer
  loop
    execute format('analyze %s', new_table);
    analyzed := analyzed + 1;
  end loop;
  return analyzed;
end $$;
