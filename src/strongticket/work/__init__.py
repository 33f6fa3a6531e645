"""Long work: finished pieces are kept, and a kill, more processes or a cluster do not change a byte of them."""
