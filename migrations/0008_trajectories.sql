-- Trajectories: segments and role calls with their prompts, completions and tokens.

create table app.text_part (                   -- parts of rendered prompts, each stored once
  tenant_id  uuid not null,
  sha256     bytea not null,
  body       text not null,
  primary key (tenant_id, sha256)
);

-- Deletes the prompt parts of a deleted tenant. A foreign key would lock the tenant's row for each stored part.
create function app.delete_text_parts() returns trigger
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  delete from app.text_part where tenant_id = old.id;
  return null;
end $$;
create trigger tenant_deleted after delete on app.tenant for each row execute function app.delete_text_parts();

create table app.segment (                     -- role calls of one role whose context only grows
  run_id           uuid not null,
  idx              integer not null,           -- from 0, over all roles of the run
  tenant_id        uuid not null,
  role             text not null,
  parent_idx       integer,                    -- previous segment of the role; null for its first
  parent_tokens    integer,                    -- tokens shared with it at the start; null if token ids are unknown
  boundary_reason  text not null check (boundary_reason in
                     ('root', 'fork', 'compaction', 'memory_edit', 'workspace_reset', 'subagent', 'template_break',
                      'rejected')),
  primary key (run_id, idx),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

create table app.role_call (
  run_id             uuid not null,
  seq                bigint not null,          -- of the step that contains the parsed output
  tenant_id          uuid not null,
  role               text not null,
  engine             text not null,
  model              text not null default '',
  is_accepted        boolean not null default true,
  attempt            integer not null default 1 check (attempt > 0),  -- number of the request in the role call
  problem            text not null default '', -- why the completion was rejected; '' if it was accepted
  failed_attempts    jsonb not null default '[]',
  is_final           boolean not null default false,  -- the role ended the run with this call

  prompt             jsonb not null,           -- [[message role, [sha256 hex of each part]]]
  completion         text not null default '',
  finish_reason      text not null default '',
  sampling           jsonb not null default '{}',
  prompt_tokens      integer not null default 0,
  completion_tokens  integer not null default 0,
  cost_usd           numeric(12, 6) not null default 0,
  priced             boolean not null default true,

  segment_idx        integer,                  -- null if the engine wrote no text
  position           integer not null default 0,  -- in its segment, from 0
  prompt_kept        integer not null default 0,  -- number of the segment's messages that precede those in prompt
  prompt_offset      integer,                  -- number of the segment's tokens before prompt_ids; null if unknown

  -- Token ids have 24 bits each. All arrays are little-endian.
  prompt_ids         bytea,                    -- token ids that the prompt adds to its segment
  completion_ids     bytea,
  logprobs           bytea,                    -- one float32 per completion id, of the distribution sampled from
  entropy            bytea,                    -- one float16 per completion id, in nats; null if the engine gave none
  loss_mask          bytea,                    -- one bit per completion id, lowest first; 1 if sampled by the policy

  policy             text not null default '', -- NAME@VERSION
  policy_version_id  uuid,
  weights_sha256     text not null default '',
  tokenizer_sha256   text not null default '',
  template_sha256    text not null default '',
  engine_build       text not null default '',
  checkpoint_id      text,                     -- where a fork before this call starts; null if there is none
  state_key          text not null default '',
  action_key         text not null default '',
  trainable          text not null check (trainable in ('rl', 'sft', 'none')),
  trainable_reason   text not null default '',
  quarantine         text not null default '', -- why it must not be trained although recorded as trainable

  primary key (run_id, seq),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade,
  constraint role_call_problem check (is_accepted = (problem = '')),
  constraint role_call_rl check (trainable <> 'rl' or (completion_ids is not null and policy <> '')),
  constraint role_call_tokens check (
    (completion_ids is null and logprobs is null and loss_mask is null and prompt_ids is null
     and prompt_offset is null)
    or (octet_length(completion_ids) % 3 = 0 and octet_length(logprobs) = octet_length(completion_ids) / 3 * 4
        and octet_length(prompt_ids) % 3 = 0 and prompt_offset >= 0
        and (entropy is null or octet_length(entropy) = octet_length(completion_ids) / 3 * 2)
        and octet_length(loss_mask) = (octet_length(completion_ids) / 3 + 7) / 8))
);
alter table app.role_call
  alter column prompt_ids set storage external,
  alter column logprobs set storage external;
create index role_call_of_segment on app.role_call (run_id, segment_idx, position);
create index role_call_of_policy on app.role_call (tenant_id, policy) where policy <> '';

create table app.completion_span (             -- a labeled range of a completion
  run_id       uuid not null,
  seq          bigint not null,                -- of the role call
  nth          integer not null,
  tenant_id    uuid not null,
  kind         text not null,
  start_char   integer not null,               -- code points of the completion, end excluded
  end_char     integer not null,
  start_token  integer,                        -- completion ids, end excluded; null if token ids are unknown
  end_token    integer,
  primary key (run_id, seq, nth),
  foreign key (tenant_id, run_id) references app.run (tenant_id, id) on delete cascade
);

select app.protect_table(t) from unnest(array['app.text_part', 'app.segment', 'app.role_call',
  'app.completion_span']::regclass[]) as t;
