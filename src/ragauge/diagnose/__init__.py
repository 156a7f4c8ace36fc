"""Where evidence is lost, and why a topic fails: statistics on frames."""
