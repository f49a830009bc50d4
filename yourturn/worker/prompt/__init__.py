"""The prompts of agents: brief, instructions, quoted texts."""
