"""What a job and the jobs of a sweep amount to: a file for each subject, in the order of `ragauge.findings.order`."""
