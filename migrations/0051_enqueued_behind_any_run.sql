-- The end of any run queues the next one of its thread. A run of LangGraph's clients can wait for one of Offing's API.

drop trigger run_ended_queues_next on app.run;
create trigger run_ended_queues_next after update of status on app.run
  for each row when (old.status is distinct from new.status and new.status in ('done', 'failed', 'cancelled'))
  execute function app.queue_enqueued_run();
