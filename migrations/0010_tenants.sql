-- Deleting a tenant takes its prompt parts along. Not by a foreign key: each stored part would lock the tenant's row.

create function app.tenant_deleted() returns trigger language plpgsql as $$
begin
  delete from app.text_part where tenant_id = old.id;
  return null;
end $$;
create trigger tenant_deleted after delete on app.tenant for each row execute function app.tenant_deleted();
