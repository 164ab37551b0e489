"""The agent all peers host; here its parts are importable for those that host no project folder."""
