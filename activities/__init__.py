"""Effects: what the ports of `workflows.ports` do, each in guest processes."""
