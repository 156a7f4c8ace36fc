"""What is found out about a job by running its stages once more."""
