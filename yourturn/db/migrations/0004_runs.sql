-- Why: runs, with the journal of their calls and their source.
ALTER TABLE tasks ADD COLUMN journal {big} NOT NULL DEFAULT 0;
ALTER TABLE questions ADD COLUMN step TEXT;
CREATE TABLE steps (
    task_id     {big} NOT NULL REFERENCES tasks (id),
    journal     {big} NOT NULL,
    place       TEXT NOT NULL,
    name        TEXT NOT NULL,
    agent       TEXT,
    digest      TEXT NOT NULL,
    call        TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('running', 'waiting', 'completed')),
    session_id  TEXT,
    seat        TEXT,
    result      TEXT,
    started_at  {big} NOT NULL,
    ended_at    {big},
    PRIMARY KEY (task_id, journal, place),
    CHECK ((status = 'completed') = (result IS NOT NULL)),
    CHECK ((status = 'completed') = (ended_at IS NOT NULL))
) {strict};
CREATE INDEX steps_open ON steps (task_id, journal, place) WHERE status <> 'completed';

CREATE TABLE programs (
    id       {id},
    task_id  {big} NOT NULL REFERENCES tasks (id),
    journal  {big} NOT NULL,
    at       {big} NOT NULL,
    file     TEXT NOT NULL,
    digest   TEXT NOT NULL,
    body     TEXT NOT NULL
) {strict};
CREATE INDEX programs_task ON programs (task_id, id);
