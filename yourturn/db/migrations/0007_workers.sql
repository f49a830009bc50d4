-- Why: idle workers are visible, and the open questions of a task are found without reading its closed ones.
DROP INDEX questions_task;
CREATE INDEX questions_task ON questions (task_id, responded_at, id);
CREATE TABLE workers (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    name          TEXT NOT NULL,
    host          TEXT NOT NULL,
    agents        TEXT NOT NULL,
    project_id    {big} REFERENCES projects (id),
    epic_id       {big} REFERENCES tasks (id),
    role          TEXT,
    runs          INTEGER NOT NULL CHECK (runs IN (0, 1)),
    parallel      INTEGER NOT NULL CHECK (parallel >= 1),
    started_at    {big} NOT NULL,
    seen_at       {big} NOT NULL,
    PRIMARY KEY (workspace_id, actor, name)
) {strict};
