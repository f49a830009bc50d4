-- Why: finished work asks a real question, which a project may let silence accept; and a failed dependency is asked about as
-- long as it is waited for, so that nothing needs to remember that it was.
{own}
ALTER TABLE deps DROP COLUMN warned;
{owed}
