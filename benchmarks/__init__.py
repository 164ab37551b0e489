"""Measures of this host beside Temporal's own ADK plugin and a bare workflow; README.md says what each number is."""
