"""A model's weight matrices: frozen at random values, scored, and masked to the top k."""
