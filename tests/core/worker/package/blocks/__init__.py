from .scale import Scale as Scale
