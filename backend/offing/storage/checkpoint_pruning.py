"""Remove checkpoints, and never what a checkpoint that stays is read from.

A checkpoint needs the values that it refers to, with all versions that those add to. A channel of LangGraph's
DeltaChannel also needs the checkpoints before it, with what tasks wrote at them, as far back as its last snapshot.
"""

from offing.storage.fencing import SHARED

KEPT_ONLY = """
    needed(ns, checkpoint_id, parent_id, delta) as (
      select ns, checkpoint_id, parent_id, delta from kept
      union
      select c.ns, c.checkpoint_id, c.parent_id,
             array(select unnest(n.delta) intersect select unnest(c.delta) order by 1)
        from needed n cross join lateral (
          select * from checkpoint
           where thread_id = (select id from of_thread) and ns = n.ns and checkpoint_id = n.parent_id limit 1) as c
       where n.delta <> '{}'),
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
"""Of the thread `of_thread`, all but what `kept` is read from. Without a thread, nothing."""

OURS_ONLY = f"with recursive guard as ({SHARED}), of_thread as (select %(thread)s::uuid as id from guard),"

KEEP_LATEST = f"""
    {OURS_ONLY}
    kept as (
      select ns, checkpoint_id, parent_id, delta from (
        select *, row_number() over (partition by ns order by nth desc) as latest from checkpoint
         where thread_id = %(thread)s) as c
       where latest <= %(keep)s),
    {KEPT_ONLY}
    select 1 from guard
"""

DROP_RUNS = f"""
    {OURS_ONLY}
    kept as (
      select ns, checkpoint_id, parent_id, delta from checkpoint
       where thread_id = %(thread)s
         and not (run_id::text = any(%(run_ids)s) or coalesce(metadata->>'run_id' = any(%(run_ids)s), false))),
    {KEPT_ONLY}
    select 1 from guard
"""

DROP_THREAD = f"""
    with guard as ({SHARED}),
    spare_values as (delete from checkpoint_value where thread_id = %(thread)s and exists (select from guard)),
    spare_writes as (delete from checkpoint_write where thread_id = %(thread)s and exists (select from guard)),
    spare as (delete from checkpoint where thread_id = %(thread)s and exists (select from guard))
    select 1 from guard
"""

DROP_NAMESPACES = f"""
    with guard as ({SHARED}),
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

COPY = f"""
    with guard as ({SHARED}),
    copied_values as (
      insert into checkpoint_value (thread_id, ns, channel, version, tenant_id, base_version, type, items, body)
      select %(thread)s, ns, channel, version, tenant_id, base_version, type, items, body
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
                              metadata, channels, versions, delta)
      select %(thread)s, ns, checkpoint_id, parent_id, tenant_id, %(run)s, %(fence)s, superstep, turn, body, metadata,
             channels, versions, delta
        from checkpoint where thread_id = %(source)s and exists (select from guard) order by nth
      on conflict do nothing)
    select 1 from guard
"""
