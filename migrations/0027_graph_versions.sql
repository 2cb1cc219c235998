-- Which of these versions of graphs runs of any tenant began with, or will begin with.

create index run_by_graph_version on app.run (graph_version);
create index rollout_group_by_graph_version on app.rollout_group (graph_version);

create function app.graph_versions_in_use(versions text[]) returns setof text
language sql stable security definer set search_path = pg_catalog, app, pg_temp as $$
  select v from unnest(versions) as v
   where exists (select from app.run r where r.graph_version = v)
      or exists (select from app.rollout_group g where g.graph_version = v)
$$;
