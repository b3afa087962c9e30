"""Reactive Streams for trio: data flows at the pace of the one who consumes it.

The map, from the ground up; each folder is a layer, entered by its ``__init__``:

* `penstock.api`: what the words mean: the four interfaces, demand, every exception.
* `penstock.core`: streams inside one process: sources, `subscribe`, sinks, topics.
* `penstock.operators`: verbs over publishers, composed with `pipe`.
* `penstock.testing`: what you need to test your own publishers and subscribers.

The everyday names are here; `ops` is short for `penstock.operators`.
"""
