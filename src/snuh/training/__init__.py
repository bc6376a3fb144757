"""What the methods share: estimators, training loops, objectives and closed forms."""
