"""Git for agents: repositories, worktrees, branches, commits."""
