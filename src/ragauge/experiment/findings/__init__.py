"""What is found out about a job: a file for each finding, in the order of `ragauge.experiment.findings.order`."""
