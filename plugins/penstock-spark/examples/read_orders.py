"""Read orders from a Penstock server into Parquet, each of them once, and add them up.
A second run reads what is new.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(uri: str = "tcp://127.0.0.1:7000", folder: str = "orders") -> None:
    spark = SparkSession.builder.appName("orders").getOrCreate()
    orders = (
        spark.readStream.format("penstock")
        .option("stream", "orders")
        .option("startingOffsets", "earliest")
        .option("valueFormat", "json")
        .option("schema", "customer STRING, amount DOUBLE")
        .load(uri)
    )
    writing = (
        orders.writeStream.format("parquet")
        .option("path", f"{folder}/rows")
        .option("checkpointLocation", f"{folder}/checkpoint")
    )
    query = writing.trigger(availableNow=True).start()
    query.awaitTermination()
    print(f"{sum(each.numInputRows for each in query.recentProgress):,} new orders")
    totals = (
        spark.read.parquet(f"{folder}/rows")
        .groupBy("customer")
        .agg(f.count("*").alias("orders"), f.sum("amount").alias("amount"))
    )
    totals.orderBy("customer").show()


if __name__ == "__main__":
    main(*sys.argv[1:])
