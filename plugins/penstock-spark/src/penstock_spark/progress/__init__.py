"""How far queries are behind: a listener with the three figures that Kafka's source has."""

from penstock_spark.progress._lag import Lag, LagListener, lag_of

__all__ = ["Lag", "LagListener", "lag_of"]
