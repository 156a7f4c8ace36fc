"""What is found out about a job and logged: verdicts, failures, tables, labels of people."""
