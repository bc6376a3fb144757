"""The experiments of the paper: which runs each table needs, the results file, and the report."""
