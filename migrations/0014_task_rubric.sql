-- The rubric of a task, in its reference. A task may have a rubric without accepted answers.

alter table app.task_reference
  alter column answers drop not null,          -- null if the correct answer is unknown
  add column rubric jsonb not null default '[]';  -- criteria, each with text and weight; empty if there are none
