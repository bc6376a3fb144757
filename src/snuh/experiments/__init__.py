"""The paper's tables: which runs each needs, the file that keeps finished runs, and how they are printed."""
