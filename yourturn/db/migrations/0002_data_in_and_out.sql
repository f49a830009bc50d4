-- Why: imported tasks keep unknown fields, and a desk stores the time of its last restore. One index serves all states, in the order
-- in which work is claimed; on SQLite, xid has no use.
ALTER TABLE workspaces ADD COLUMN fenced_at {big};
ALTER TABLE tasks ADD COLUMN extra TEXT;
-- A move touches fewer indexes and rows.
DROP INDEX tasks_ready;
DROP INDEX tasks_state;
CREATE INDEX tasks_state ON tasks (project_id, state, priority, created_at, id) WHERE state <> 'done';
{drop_xid_index}
{drop_references}
{checks}
