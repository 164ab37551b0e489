"""Approvals as data: what waits, what was decided, which call a permission is bound to."""
