-- Limits of concurrent calls through a provider of a tenant.

alter table app.provider
  add column max_concurrent_calls integer check (max_concurrent_calls between 1 and 10000);  -- null means no limit
