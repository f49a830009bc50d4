-- Why: an imported task keeps what this desk has no field for, and a restored desk remembers when it was restored. One index
-- says what is in which state, in the order in which work is taken; where one writer writes at a time, xid says nothing.
ALTER TABLE workspaces ADD COLUMN fenced_at {big};
ALTER TABLE tasks ADD COLUMN extra TEXT;
-- And: a move touches fewer indexes and rows.
DROP INDEX tasks_ready;
DROP INDEX tasks_state;
CREATE INDEX tasks_state ON tasks (project_id, state, priority, created_at, id) WHERE state <> 'done';
{drop_xid_index}
{drop_references}
{checks}
