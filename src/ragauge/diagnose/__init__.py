"""Where evidence is lost, why a topic fails, and which measure foresees the answers: statistics on frames."""
