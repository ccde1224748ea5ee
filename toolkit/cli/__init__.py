"""The command `toolkit`: the composition root, and the one place here that may name backends."""
