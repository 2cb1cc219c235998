-- Tool policies that a tenant keeps under a name, to choose one for a question.

create table app.tool_policy (
  tenant_id   uuid not null references app.tenant on delete cascade,
  name        text not null collate "C",
  policy      jsonb not null,                  -- as in the API, without default values
  created_at  timestamptz not null default clock_timestamp(),
  updated_at  timestamptz not null default clock_timestamp(),
  primary key (tenant_id, name)
);

select app.protect_table('app.tool_policy');
