"""The paths of the API, by topic."""
