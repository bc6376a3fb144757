"""Collections over HTTP: an API that does what the command line does, and a page to search and explore."""
