"""What an agent is told: brief, instructions, quoted text."""
