from dataclasses import dataclass

FLOOR = 0.5


@dataclass
class ScaleConfig:
    factor: float = 3.0
    width: int = 16


def floor() -> float:
    return FLOOR
