"""The permission gate for tool calls of Claude Code."""
