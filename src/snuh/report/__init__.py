"""One page of finished runs: tables, plots and maps as HTML that needs nothing else, and a summary."""
