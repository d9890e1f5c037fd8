"""Sets of patterns: what users make of them, and the table by which the core finds them."""
