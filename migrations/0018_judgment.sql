-- The table has the spelling of the code and the documents.

alter table app.experiment_judgement rename to experiment_judgment;
alter table app.experiment_judgment rename constraint experiment_judgement_pkey to experiment_judgment_pkey;
