-- Ends a statement of a claim, and with it the transaction, if the claim is lost. Statements of a transaction can then be
-- sent together with its commit: none of them takes effect if one of them finds that the claim is lost.

create function app.assert_owned(owned boolean) returns boolean
language plpgsql set search_path = pg_catalog, app, pg_temp as $$
begin
  if not owned then
    raise exception 'the claim is lost' using errcode = 'OF001';
  end if;
  return true;
end $$;
