"""Jobs and sweeps: the stages in order, what is recorded of them, pooling, and running a logged run again."""
