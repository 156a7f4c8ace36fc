"""Questions to the queries that are searched: HyDE, several queries, sub-questions, feedback, recorded ones."""
