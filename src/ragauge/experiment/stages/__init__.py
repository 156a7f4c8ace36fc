"""The stages of a job, in order, and their runner."""
