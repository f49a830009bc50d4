"""The command `turn`: parses the arguments, calls the client, prints the result."""
