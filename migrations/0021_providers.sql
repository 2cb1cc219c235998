-- Model providers of a tenant, with their keys encrypted, and presets of engines for roles.

create table app.provider (
  tenant_id        uuid not null references app.tenant on delete cascade,
  name             text not null collate "C",  -- what precedes the slash in the name of a model
  litellm_provider text not null,
  api_base         text not null default '',   -- empty means the provider's own address
  key_id           text,                       -- of the line of the key file that encrypts the key
  key_ciphertext   bytea,                      -- nonce and AES-256-GCM; null means that no key is set
  key_set_at       timestamptz,
  last_test        jsonb,                      -- null means that it was not tested, or not since its last change
  created_at       timestamptz not null default clock_timestamp(),
  updated_at       timestamptz not null default clock_timestamp(),
  primary key (tenant_id, name),
  check ((key_id is null) = (key_ciphertext is null) and (key_id is null) = (key_set_at is null))
);

create table app.preset (
  tenant_id   uuid not null references app.tenant on delete cascade,
  name        text not null collate "C",
  engines     jsonb not null,                  -- engine config by role; `all` stands for the other roles
  budget      jsonb not null,                  -- limits of a run that names none
  created_at  timestamptz not null default clock_timestamp(),
  updated_at  timestamptz not null default clock_timestamp(),
  primary key (tenant_id, name)
);

select app.protect_table(t) from unnest(array['app.provider', 'app.preset']::regclass[]) as t;
