"""The report of a results file: a self-contained HTML page and a Markdown summary."""
