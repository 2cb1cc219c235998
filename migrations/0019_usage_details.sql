-- Parts of the tokens of a role call. 0 also means that the provider did not say, as in all earlier role calls.

alter table app.role_call
  add column cached_prompt_tokens integer not null default 0,  -- of prompt_tokens, read from the provider's cache
  add column reasoning_tokens     integer not null default 0;  -- of completion_tokens, thought before the answer
