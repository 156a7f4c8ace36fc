"""Config groups, which ragauge adds to its own."""
