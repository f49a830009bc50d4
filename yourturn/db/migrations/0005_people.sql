-- Why: people log in over HTTP, with passwords, sessions and one-time links.
ALTER TABLE users ADD COLUMN password TEXT;
ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
CREATE TABLE logins (
    id            {id},
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'approver', 'admin')),
    hash          TEXT NOT NULL UNIQUE,
    about         TEXT NOT NULL DEFAULT '',
    created_at    {big} NOT NULL,
    expires_at    {big} NOT NULL,
    ended_at      {big}
) {strict};
CREATE INDEX logins_actor ON logins (workspace_id, actor) WHERE ended_at IS NULL;

CREATE TABLE links (
    id            {id},
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'approver', 'admin')),
    hash          TEXT NOT NULL UNIQUE,
    created_by    TEXT NOT NULL,
    created_at    {big} NOT NULL,
    expires_at    {big} NOT NULL,
    used_at       {big}
) {strict};

CREATE TABLE prefs (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    actor         TEXT NOT NULL,
    body          TEXT NOT NULL,
    PRIMARY KEY (workspace_id, actor)
) {strict};

CREATE TABLE rates (
    workspace_id  {big} NOT NULL REFERENCES workspaces (id),
    name          TEXT NOT NULL,
    used_until    {big} NOT NULL,
    PRIMARY KEY (workspace_id, name)
) {strict};

CREATE INDEX questions_closed ON questions (workspace_id, responded_at) WHERE responded_at IS NOT NULL;
