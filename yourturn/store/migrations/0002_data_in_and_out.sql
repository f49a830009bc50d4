-- Why: an imported task keeps what this desk has no field for, and a restored desk remembers when it was restored.
ALTER TABLE workspaces ADD COLUMN fenced_at {big};
ALTER TABLE tasks ADD COLUMN extra TEXT;
