-- The runs whose reports cite a source are found by the source.

create index citation_by_source on app.citation (tenant_id, source_id, run_id);
