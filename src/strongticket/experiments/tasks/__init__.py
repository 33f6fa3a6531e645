"""What several experiments measure with: data, targets, random sources, searches, valleys."""
