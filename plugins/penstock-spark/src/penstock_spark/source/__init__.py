"""The source of Spark: `spark.readStream.format("penstock")` and `spark.read.format("penstock")`.

Settings, offsets and the plan do not need pyspark. `_readers` is what Spark calls.
"""
