"""The quality gate: rules, the baseline, verdicts on a finishing job and on ended runs (docs/ci.md)."""
