"""What a job came to, by topic and in sums: joined rows, metrics, slices, which topics are judged."""
