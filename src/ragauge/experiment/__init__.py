"""Jobs and sweeps: stages in order, records, pooling, and rerunning a logged run."""
