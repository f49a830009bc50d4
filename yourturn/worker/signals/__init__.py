"""What an agent's last message means."""
