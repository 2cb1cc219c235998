-- Threads whose last run stopped at an interrupt, for the list of what waits for a person.
create index langgraph_thread_interrupted on app.langgraph_thread (tenant_id, thread_id) where status = 'interrupted';
