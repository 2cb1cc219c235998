-- Whether a run's tool policy was given with its question. A follow-up that gives none gets it.
alter table app.run add column policy_given boolean not null default false;
