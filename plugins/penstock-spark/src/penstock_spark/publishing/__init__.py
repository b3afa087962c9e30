"""DataFrames and streaming queries as publishers of a service
that runs in the driver's Python process.

`publish_dataframe` offers a DataFrame, `foreach_batch` feeds the batches of a streaming query.
Spark's own processes start no trio run; the service does, in the program that has the session.
"""

from penstock_spark.publishing._foreach_batch import foreach_batch
from penstock_spark.publishing._publish_dataframe import publish_dataframe

__all__ = ["foreach_batch", "publish_dataframe"]
