from tests.fixtures.gemini import gemini

__all__ = ["gemini"]
