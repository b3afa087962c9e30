"""Penstock on Apache Spark.

`format("penstock")` reads published logs: `penstock_spark.source`. `penstock_spark.audit` judges
recorded signals. `session` makes a Spark session, or says what is missing for one; `ensure_java`
lets Spark find a Java. Spark's workers import this package, so it starts no trio run.
"""

from penstock_spark._java import ensure_java
from penstock_spark._session import session

__all__ = ["ensure_java", "session"]
