"""The quality gate: rules, the baseline, at the end of a job and of runs that have ended."""
