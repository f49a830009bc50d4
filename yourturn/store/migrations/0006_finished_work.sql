-- Why: finished work asks a real question, which a project may let silence accept; and a failed dependency is asked about as
-- long as it is waited for, so that nothing needs to remember that it was.
{own}
ALTER TABLE deps DROP COLUMN warned;
UPDATE tasks SET accept_at = NULL, due_at = updated_at WHERE state = 'review';
UPDATE tasks SET due_at = updated_at WHERE state = 'blocked' AND EXISTS (
    SELECT 1 FROM deps d JOIN tasks f ON f.id = d.needs_id WHERE d.task_id = tasks.id AND f.state = 'failed');
