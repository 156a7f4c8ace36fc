"""Findings about a job and the jobs of a sweep: a file for each subject, in the order of `ragauge.findings.order`."""
