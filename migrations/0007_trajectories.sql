-- What training needs of a run: tasks, groups of rollouts, the tokens of every turn, and who has used them.

-- Runs ------------------------------------------------------------------------------------------------------------

alter table app.run
  add column kind text not null default 'ask' check (kind in ('ask', 'rollout')),
  add column durability text not null default 'sync' check (durability in ('sync', 'exit'));
comment on column app.run.durability is 'exit: nothing is written before the slice ends; lost, it is done again';

-- Policy versions -------------------------------------------------------------------------------------------------

create table app.policy_version (               -- weights or a prompt library; immutable but for its state
  id                uuid primary key,
  tenant_id         uuid not null references app.tenant on delete cascade,
  name              text not null,
  version           integer not null check (version > 0),
  parent_id         uuid references app.policy_version,
  kind              text not null check (kind in ('full', 'lora', 'prompts')),
  base_model        text not null default '',
  uri               text not null,              -- folder on the engine's machine
  sha256            text not null,
  tokenizer_sha256  text not null default '',
  template_sha256   text not null default '',
  state             text not null default 'candidate'
                      check (state in ('candidate', 'canary', 'active', 'retired', 'bad')),
  lineage           jsonb not null default '{}',
  evaluation        jsonb not null default '{}',
  created_at        timestamptz not null default clock_timestamp(),
  unique (tenant_id, name, version)
);

create function app.guard_policy_version() returns trigger language plpgsql as $$
begin
  if (new.name, new.version, new.kind, new.base_model, new.uri, new.sha256, new.tokenizer_sha256, new.template_sha256)
     is distinct from
     (old.name, old.version, old.kind, old.base_model, old.uri, old.sha256, old.tokenizer_sha256, old.template_sha256)
  then
    raise exception 'policy version % is immutable', old.id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger policy_version_guard before update on app.policy_version
  for each row execute function app.guard_policy_version();

-- Tasks, groups and rollouts --------------------------------------------------------------------------------------

create table app.task (
  id              uuid primary key,
  tenant_id       uuid not null references app.tenant on delete cascade,
  dataset         text not null,
  split           text not null default '',
  name            text not null default '',     -- the task's own id in its dataset
  question        text not null,
  scope           jsonb not null default '{}',
  difficulty      double precision,             -- null: not known
  tags            text[] not null default '{}',
  content_sha256  text not null,
  created_at      timestamptz not null default clock_timestamp(),
  unique (tenant_id, dataset, content_sha256)
);

create table app.task_reference (               -- apart, so that nothing that a run reads can hold it
  task_id    uuid primary key references app.task on delete cascade,
  tenant_id  uuid not null,
  answers    jsonb not null,                    -- accepted answers; an empty list: the task cannot be answered
  evidence   jsonb not null default '[]'
);

create table app.batch (                        -- one request to collect rollouts
  id          uuid primary key,
  tenant_id   uuid not null references app.tenant on delete cascade,
  name        text not null default '',
  request     jsonb not null,
  created_at  timestamptz not null default clock_timestamp()
);

create table app.rollout_group (
  id              uuid primary key,
  tenant_id       uuid not null references app.tenant on delete cascade,
  batch_id        uuid not null references app.batch on delete cascade,
  task_id         uuid not null references app.task on delete cascade,
  graph           text not null,
  graph_version   text not null,
  engines         jsonb not null,               -- role -> EngineChoice, as pinned
  policies        jsonb not null default '{}',  -- role -> policy version id, as pinned
  scorers         jsonb not null,               -- [{name, version, weight, options}]
  size            integer not null check (size > 0),
  seed            bigint not null,
  attempts        integer not null check (attempts > 0),  -- runs of a member at most
  tags            text[] not null default '{}',
  state           text not null default 'open' check (state in ('open', 'complete', 'short')),
  created_at      timestamptz not null default clock_timestamp(),
  completed_at    timestamptz
);
create index rollout_group_of_batch on app.rollout_group (batch_id, id);
create index rollout_group_of_task on app.rollout_group (task_id);

create table app.rollout (                      -- a run collected for training; a retry is a rollout of its own
  run_id        uuid primary key references app.run on delete cascade,
  group_id      uuid not null references app.rollout_group on delete cascade,
  tenant_id     uuid not null,
  member        integer not null,               -- 0 .. size-1
  attempt       integer not null default 1,
  parent_id     uuid,                           -- the rollout that it was forked from
  outcome       text check (outcome in ('answered', 'done', 'truncated', 'violated', 'infra_error')),
  reward        double precision,               -- null: not scored
  settled_at    timestamptz,                    -- null: running, or not scored yet
  unique (group_id, member, attempt)
);
create index rollout_unsettled on app.rollout (run_id) where settled_at is null;
create index rollout_by_time on app.rollout (tenant_id, settled_at, run_id);

-- Scores of runs, beside those of reports and their claims ---------------------------------------------------------

alter table app.reward drop constraint reward_target_check;
alter table app.reward
  add constraint reward_target_check check (target in ('report', 'claim', 'run', 'turn')),
  alter column report drop not null,            -- null: the run left none
  add column turn_seq bigint,                   -- for target turn
  add column scorer_version text not null default '1',
  add column failure text not null default '',  -- why there is no value
  add column detail jsonb not null default '{}';

-- Segments, turns and spans ---------------------------------------------------------------------------------------

create table app.segment (                      -- turns of one role whose context only grows
  run_id         uuid not null references app.run on delete cascade,
  idx            integer not null,              -- from 0, over all roles of the run
  tenant_id      uuid not null,
  role           text not null,
  parent_idx     integer,                       -- the role's segment before; null: its first
  parent_tokens  integer,                       -- tokens shared with it at the start; null: ids are not known
  fracture       text not null check (fracture in
                   ('root', 'fork', 'compaction', 'memory_edit', 'workspace_reset', 'subagent', 'template_break')),
  primary key (run_id, idx)
);

alter table app.turn
  add column segment integer,                   -- null: the engine wrote no text
  add column place integer not null default 0,  -- in its segment, from 0
  add column prompt_kept integer not null default 0,  -- messages of the segment before those of prompt
  add column prompt_offset integer,             -- tokens of the segment before prompt_ids; null: ids are not known
  add column prompt_ids bytea,                  -- 24 bits an id, little-endian: what this turn's prompt adds to its segment
  add column completion_ids bytea,              -- 24 bits an id, little-endian
  add column logprobs bytea,                    -- float32 little-endian, of the distribution sampled from, a completion id each
  add column entropy bytea,                     -- float16 little-endian, nats, of the same; null: not given
  add column mask bytea,                        -- a bit a completion id, lowest first; 1: sampled by the policy
  add column policy text not null default '',   -- NAME@VERSION
  add column policy_version_id uuid,
  add column weights_sha256 text not null default '',
  add column tokenizer_sha256 text not null default '',
  add column template_sha256 text not null default '',
  add column engine_build text not null default '',
  add column finish text not null default '',
  add column done boolean not null default false,  -- the role ended the run with it
  add column checkpoint_id text,                -- where a fork before this turn starts; null: none was kept
  add column state_key text not null default '',
  add column action_key text not null default '',
  add column quarantine text not null default '';  -- why it may not be trained although it was recorded as trainable
alter table app.turn add constraint turn_tokens check (
  (completion_ids is null and logprobs is null and mask is null and prompt_ids is null and prompt_offset is null)
  or (octet_length(completion_ids) % 3 = 0 and octet_length(logprobs) = octet_length(completion_ids) / 3 * 4
      and octet_length(prompt_ids) % 3 = 0 and prompt_offset >= 0
      and (entropy is null or octet_length(entropy) = octet_length(completion_ids) / 3 * 2)
      and octet_length(mask) = (octet_length(completion_ids) / 3 + 7) / 8));
alter table app.turn add constraint turn_rl check (trainable <> 'rl' or (completion_ids is not null and policy <> ''));
alter table app.turn alter column prompt_ids set storage external, alter column logprobs set storage external;
create index turn_of_segment on app.turn (run_id, segment, place);
create index turn_of_policy on app.turn (tenant_id, policy) where policy <> '';

create table app.span (
  run_id       uuid not null references app.run on delete cascade,
  seq          bigint not null,                 -- its turn
  nth          integer not null,
  tenant_id    uuid not null,
  kind         text not null,
  start_char   integer not null,                -- code points of the completion, end excluded
  end_char     integer not null,
  start_token  integer,                         -- completion ids, end excluded; null: ids are not known
  end_token    integer,
  primary key (run_id, seq, nth)
);

-- Who has used a rollout: each use is decided once ------------------------------------------------------------------

create table app.ledger (
  train_run  uuid not null,
  run_id     uuid not null references app.run on delete cascade,
  tenant_id  uuid not null,
  step       integer not null,
  reason     text not null check (reason in ('kept', 'stale', 'zero_advantage', 'ratio', 'truncated', 'short_group')),
  at         timestamptz not null default clock_timestamp(),
  primary key (train_run, run_id)
);

-- Rollouts that ended, or whose group may be complete, and that nobody has settled ----------------------------------

create function app.sweep_rollouts(forgotten_after interval, most integer)
returns table (run uuid, tenant uuid) language sql security definer set search_path = pg_catalog, app as $$
  select o.run_id, o.tenant_id from app.rollout o join app.run r on r.id = o.run_id
   where o.settled_at is null and r.ended_at < clock_timestamp() - forgotten_after
   order by r.ended_at limit most
$$;

select app.protect(t) from unnest(array['app.policy_version', 'app.task', 'app.task_reference', 'app.batch',
  'app.rollout_group', 'app.rollout', 'app.segment', 'app.span', 'app.ledger']::regclass[]) as t;
