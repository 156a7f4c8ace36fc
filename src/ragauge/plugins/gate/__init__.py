"""The quality gate: rules, the baseline, verdicts on a job at its end and on runs that have ended (docs/ci.md)."""
