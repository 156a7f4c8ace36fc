"""The stages of a job, in order, and what runs them."""
