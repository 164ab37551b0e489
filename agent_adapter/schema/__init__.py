"""Tool schemas in the dialects of model APIs."""
