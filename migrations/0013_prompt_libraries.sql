-- Prompt libraries: the text of a policy version of kind prompts, here so that every worker has it.

create table app.prompt_library (
  policy_version_id  uuid primary key references app.policy_version on delete cascade,
  tenant_id          uuid not null references app.tenant on delete cascade,
  experiences        text not null,              -- the file experiences.json, letter by letter
  cases              text not null               -- the file cases.json
);

create function app.guard_prompt_library() returns trigger language plpgsql as $$
begin
  raise exception 'prompt library % is immutable', old.policy_version_id using errcode = 'check_violation';
end $$;
create trigger prompt_library_guard before update on app.prompt_library
  for each row execute function app.guard_prompt_library();

select app.protect('app.prompt_library'::regclass);
