-- A call's key has the digest of what is asked, so that the order of calls side by side does not matter. Until now graphs
-- written for LangGraph had it in the path of their keys, and others did not have it: theirs stay without.

alter table app.step drop constraint step_run_id_superstep_path_ordinal_key,
  add column digest text not null default '';
update app.step
   set digest = substring(path from '#([0-9a-f]{16})'), path = regexp_replace(path, '#[0-9a-f]{16}', '')
 where path ~ '#[0-9a-f]{16}';
alter table app.step add unique (run_id, superstep, path, digest, ordinal);

alter table app.intent drop constraint intent_pkey,
  add column digest text not null default '';
update app.intent
   set digest = substring(path from '#([0-9a-f]{16})'), path = regexp_replace(path, '#[0-9a-f]{16}', '')
 where path ~ '#[0-9a-f]{16}';
alter table app.intent add primary key (run_id, superstep, path, digest, ordinal);

alter table app.child_run drop constraint child_run_parent_id_superstep_path_ordinal_key,
  add column digest text not null default '';
update app.child_run
   set digest = substring(path from '#([0-9a-f]{16})'), path = regexp_replace(path, '#[0-9a-f]{16}', '')
 where path ~ '#[0-9a-f]{16}';
alter table app.child_run add unique (parent_id, superstep, path, digest, ordinal);
