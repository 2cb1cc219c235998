-- The node that recorded a step, where its path does not say it: LangGraph names a node that was started with `Send` only
-- in the metadata of its task.
alter table app.step add column node text;
