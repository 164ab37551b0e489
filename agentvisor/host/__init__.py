"""The host: settings, the Temporal connection, the development server and the processes agent code runs in."""
