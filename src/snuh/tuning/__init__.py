"""Hyperparameter search: the settings with which a method learns the best codes of a corpus."""
