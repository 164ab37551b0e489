"""Pure rules of the workflows, without a server."""
