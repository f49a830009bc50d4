"""What everything that speaks HTTP shares: who is asking, how much they may send, how they are told no, and what happens."""
