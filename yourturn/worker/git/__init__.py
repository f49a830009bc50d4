"""Git: a worktree and a branch for each task, commits, merges, patches."""
