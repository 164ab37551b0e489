from tests.fixtures.effects import effects, effects_server
from tests.fixtures.gemini import gemini

__all__ = ["effects", "effects_server", "gemini"]
