-- A row refers to rows of its own tenant alone, and functions look names up where only the owner can put them.

-- A foreign key is checked past row-level security, so one on an id alone accepts the id of another tenant's row. Each
-- one now carries the tenant, and what it refers to has a unique key that does.
do $$
declare
  key record;
begin
  for key in
    select k.oid, k.conname as name, k.conrelid::regclass as child, k.confrelid::regclass as parent,
           k.confrelid as parent_oid, k.confkey,
           (select string_agg(quote_ident(a.attname), ', ' order by n) from unnest(k.conkey) with ordinality as c(at, n)
              join pg_attribute a on a.attrelid = k.conrelid and a.attnum = c.at) as columns,
           (select string_agg(quote_ident(a.attname), ', ' order by n) from unnest(k.confkey) with ordinality as c(at, n)
              join pg_attribute a on a.attrelid = k.confrelid and a.attnum = c.at) as referred,
           k.confdeltype as on_delete
      from pg_constraint k
      join pg_attribute t on t.attrelid = k.conrelid and t.attname = 'tenant_id'
     where k.contype = 'f' and k.connamespace = 'app'::regnamespace and k.confrelid <> 'app.tenant'::regclass
       and not t.attnum = any (k.conkey)
     order by 1
  loop
    if not exists (
      select from pg_constraint u join pg_attribute t on t.attrelid = u.conrelid and t.attname = 'tenant_id'
       where u.conrelid = key.parent_oid and u.contype in ('u', 'p') and u.conkey @> (t.attnum || key.confkey)
         and u.conkey <@ (t.attnum || key.confkey))
    then
      execute format('alter table %s add unique (tenant_id, %s)', key.parent, key.referred);
    end if;
    execute format('alter table %s drop constraint %I', key.child, key.name);
    execute format('alter table %s add constraint %I foreign key (tenant_id, %s) references %s (tenant_id, %s) %s',
                   key.child, key.name, key.columns, key.parent, key.referred,
                   case key.on_delete when 'c' then 'on delete cascade'
                                      when 'n' then format('on delete set null (%s)', key.columns)
                                      else '' end);
  end loop;
end $$;

-- Where a path does not name it, pg_temp is looked through first, for tables and types: a session could put its own
-- in front of ours. Last, it can hide nothing. Trigger functions run as the owner too, when a cascade fires them.
do $$
declare
  called regprocedure;
begin
  for called in
    select oid from pg_proc
     where pronamespace = 'app'::regnamespace and (prosecdef or prorettype = 'trigger'::regtype)
  loop
    execute format('alter function %s set search_path = pg_catalog, app, pg_temp', called);
  end loop;
end $$;
