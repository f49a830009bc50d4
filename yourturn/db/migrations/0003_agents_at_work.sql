-- Why: a session is resumed on its machine and in its folder; its output and uncommitted work are stored; a permission is used
-- once.
ALTER TABLE tasks ADD COLUMN host TEXT;
ALTER TABLE tasks ADD COLUMN seat TEXT;
ALTER TABLE questions ADD COLUMN used_by TEXT;
CREATE TABLE output (
    id       {id},
    task_id  {big} NOT NULL REFERENCES tasks (id),
    epoch    {big} NOT NULL,
    at       {big} NOT NULL,
    sort     TEXT NOT NULL,
    text     TEXT NOT NULL
) {strict};
CREATE INDEX output_task ON output (task_id, id);

CREATE TABLE patches (
    task_id  {big} PRIMARY KEY REFERENCES tasks (id),
    epoch    {big} NOT NULL,
    at       {big} NOT NULL,
    base     TEXT NOT NULL,
    body     TEXT NOT NULL
) {strict};
