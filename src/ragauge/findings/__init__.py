"""What the jobs of a sweep amount to: a file for each finding, in the order of `ragauge.findings.order`."""
