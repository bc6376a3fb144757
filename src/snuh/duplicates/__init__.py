"""Near-duplicates: which documents to keep, and for every other one the kept document that it repeats.

Two documents are compared where their codes differ in few bits and their rows share words that weigh enough;
whether one repeats the other is then decided by the rows. See docs/duplicates.md.
"""

from snuh.duplicates.finding import Measure, check_numbers, find_duplicates
from snuh.duplicates.result import Duplicates
from snuh.duplicates.usual import USUAL_THRESHOLD, usual_radius

__all__ = ["USUAL_THRESHOLD", "Duplicates", "Measure", "check_numbers", "find_duplicates", "usual_radius"]
