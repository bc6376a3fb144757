"""Collections over HTTP: an API with the operations of the command line, and a web page."""
