"""Statements that delete checkpoints, but no data that a remaining checkpoint needs.

A checkpoint needs the values that it refers to, with all versions on which those are based. A
channel of LangGraph's DeltaChannel also needs the earlier checkpoints and their task writes,
back to its last snapshot.
"""

from offing.storage.fencing_sql import LOCK_OWNED_RUN

DELETE_UNNEEDED = """
    needed(ns, checkpoint_id, parent_id, delta_channels) as (
      select ns, checkpoint_id, parent_id, delta_channels from kept
      union
      select c.ns, c.checkpoint_id, c.parent_id,
             array(select unnest(n.delta_channels) intersect select unnest(c.delta_channels) order by 1)
        from needed n cross join lateral (
          select * from checkpoint
           where thread_id = (select id from of_thread) and ns = n.ns and checkpoint_id = n.parent_id limit 1) as c
       where n.delta_channels <> '{}'),
    used(ns, channel, version, base_version) as (
      select v.ns, v.channel, v.version, v.base_version
        from (select distinct ns, checkpoint_id from needed) as n cross join lateral (
          select c.ns, r.channel, r.version from checkpoint c cross join unnest(c.channels, c.versions)
            as r(channel, version)
           where c.thread_id = (select id from of_thread) and c.ns = n.ns and c.checkpoint_id = n.checkpoint_id) as r
       cross join lateral (
         select * from checkpoint_value
          where thread_id = (select id from of_thread) and ns = r.ns and channel = r.channel and version = r.version
          limit 1) as v
      union
      select v.ns, v.channel, v.version, v.base_version from used u cross join lateral (
        select * from checkpoint_value
         where thread_id = (select id from of_thread) and ns = u.ns and channel = u.channel
           and version = u.base_version limit 1) as v),
    spare as (
      delete from checkpoint c
       where c.thread_id = (select id from of_thread)
         and not exists (select from needed n where n.ns = c.ns and n.checkpoint_id = c.checkpoint_id)
      returning c.ns, c.checkpoint_id),
    spare_writes as (
      delete from checkpoint_write w using spare s
       where w.thread_id = (select id from of_thread) and w.ns = s.ns and w.checkpoint_id = s.checkpoint_id),
    spare_values as (
      delete from checkpoint_value v
       where v.thread_id = (select id from of_thread)
         and not exists (select from used u where u.ns = v.ns and u.channel = v.channel and u.version = v.version))
"""
"""Of the thread `of_thread`, deletes everything that the checkpoints in `kept` do not need. Deletes
nothing if there is no thread.
"""

LIST_THREAD_IF_OWNED = (
    f"with recursive guard as ({LOCK_OWNED_RUN}), of_thread as (select %(thread)s::uuid as id from guard),"
)

DELETE_ALL_BUT_LATEST = f"""
    {LIST_THREAD_IF_OWNED}
    kept as (
      select ns, checkpoint_id, parent_id, delta_channels from (
        select *, row_number() over (partition by ns order by nth desc) as latest from checkpoint
         where thread_id = %(thread)s) as c
       where latest <= %(keep)s),
    {DELETE_UNNEEDED}
    select 1 from guard
"""

DELETE_RUNS = f"""
    {LIST_THREAD_IF_OWNED}
    kept as (
      select ns, checkpoint_id, parent_id, delta_channels from checkpoint
       where thread_id = %(thread)s
         and not (coalesce(run_id::text = any(%(run_ids)s), false)
                  or coalesce(metadata->>'run_id' = any(%(run_ids)s), false))),
    {DELETE_UNNEEDED}
    select 1 from guard
"""

DELETE_THREAD = f"""
    with guard as ({LOCK_OWNED_RUN}),
    spare_values as (delete from checkpoint_value where thread_id = %(thread)s and exists (select from guard)),
    spare_writes as (delete from checkpoint_write where thread_id = %(thread)s and exists (select from guard)),
    spare as (delete from checkpoint where thread_id = %(thread)s and exists (select from guard))
    select 1 from guard
"""

DELETE_NAMESPACES = f"""
    with guard as ({LOCK_OWNED_RUN}),
    spare_values as (
      delete from checkpoint_value
       where thread_id = %(thread)s and ns = any(%(namespaces)s) and exists (select from guard)),
    spare_writes as (
      delete from checkpoint_write
       where thread_id = %(thread)s and ns = any(%(namespaces)s) and exists (select from guard)),
    spare as (
      delete from checkpoint where thread_id = %(thread)s and ns = any(%(namespaces)s) and exists (select from guard))
    select 1 from guard
"""

COPY_THREAD = f"""
    with guard as ({LOCK_OWNED_RUN}),
    copied_values as (
      insert into checkpoint_value (thread_id, ns, channel, version, tenant_id, base_version, type, item_count, body)
      select %(thread)s, ns, channel, version, tenant_id, base_version, type, item_count, body
        from checkpoint_value where thread_id = %(source)s and exists (select from guard)
      on conflict do nothing),
    copied_writes as (
      insert into checkpoint_write (thread_id, ns, checkpoint_id, task_id, idx, tenant_id, run_id, task_path, channel,
                                    type, body)
      select %(thread)s, ns, checkpoint_id, task_id, idx, tenant_id, %(run)s, task_path, channel, type, body
        from checkpoint_write where thread_id = %(source)s and exists (select from guard)
      on conflict do nothing),
    copied as (
      insert into checkpoint (thread_id, ns, checkpoint_id, parent_id, tenant_id, run_id, fence, superstep, turn, body,
                              metadata, channels, versions, delta_channels)
      select %(thread)s, ns, checkpoint_id, parent_id, tenant_id, %(run)s, %(fence)s, superstep, turn, body, metadata,
             channels, versions, delta_channels
        from checkpoint where thread_id = %(source)s and exists (select from guard) order by nth
      on conflict do nothing)
    select 1 from guard
"""
