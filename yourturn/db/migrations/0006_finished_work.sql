-- Why: finished work opens a question, which can time out as accepted; and the question about a failed dependency stays open while
-- the task waits for it, so no column has to record it.
{own}
ALTER TABLE deps DROP COLUMN warned;
{owed}
