"""Which measure foresees the answers: every measure per topic held against what became of the answer."""
