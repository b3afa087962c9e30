"""Spark imports each top-level module whose name begins with `pyspark_`,
and registers its `DefaultSource`.
"""

from penstock_spark._data_source import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]
