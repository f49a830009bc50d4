-- Why: a worker that waits for work is seen, and the open questions of a task are found without reading its closed ones.
DROP INDEX questions_task;
CREATE INDEX questions_task ON questions (task_id, responded_at, id);
