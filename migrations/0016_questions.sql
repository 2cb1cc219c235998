-- What runs ask of people. The words are in the run's steps; here is what decides whether a run goes on.

create table app.question (
  run_id        uuid not null references app.run on delete cascade,
  seq           bigint not null,               -- of the step that asks, which holds the words
  tenant_id     uuid not null,
  interrupt_id  text,                          -- of the graph's own interrupt; null: asked through the run's context
  kind          text not null check (kind in ('ask', 'approve', 'review', 'tool', 'interrupt')),
  asked_at      timestamptz not null default clock_timestamp(),
  due_at        timestamptz,                   -- from then on the default is taken; null: never
  answered_at   timestamptz,                   -- null: open
  answer        jsonb,
  answerer      text check (answerer in ('person', 'default')),
  answered_by   text not null default '',
  taken_seq     bigint,                        -- of the step with which the run took the answer up; null: not yet
  primary key (run_id, seq),
  unique (run_id, interrupt_id),
  check ((answered_at is null) = (answer is null) and (answered_at is null) = (answerer is null))
);
create index question_open on app.question (tenant_id, run_id) where answered_at is null;

select app.protect('app.question');

-- The first answer stands.
create function app.guard_question() returns trigger language plpgsql as $$
begin
  if old.answered_at is not null and (new.answered_at, new.answerer) is distinct from (old.answered_at, old.answerer)
  then
    raise exception 'question % of run % has been answered', old.seq, old.run_id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger question_guard before update on app.question for each row execute function app.guard_question();
