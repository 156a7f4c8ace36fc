"""Findings about a job and a sweep, a file per subject, in the order of `ragauge.findings.order`."""
