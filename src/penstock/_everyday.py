"""The everyday names that need trio, with their homes. A program that uses one of them imports this
file through the root package, so ``import penstock.blocking`` imports no trio.

An everyday name is written once: here, or in the root package if it needs no trio. ``X as X`` tells
type checkers that a name is passed on (PEP 484). At run time each name here is passed on.
"""

from penstock.logs import DiskLog as DiskLog
from penstock.logs import Log as Log
from penstock.logs import Retention as Retention
from penstock.logs import RingLog as RingLog
from penstock.logs import Spool as Spool
from penstock.runtime import Peer as Peer
from penstock.runtime import Received as Received
from penstock.runtime import Server as Server
from penstock.runtime import Service as Service
from penstock.runtime import SharedTopic as SharedTopic
from penstock.runtime import StaleElementsWarning as StaleElementsWarning
from penstock.runtime import Writer as Writer
from penstock.runtime import connect as connect
from penstock.runtime import inspect as inspect
from penstock.runtime import open_writer as open_writer
from penstock.runtime import position_at as position_at
from penstock.runtime import raise_open_files as raise_open_files
from penstock.runtime import receive as receive
from penstock.runtime import remote as remote
from penstock.runtime import request as request
from penstock.runtime import run as run
from penstock.runtime import serve as serve
from penstock.runtime import subscribe as subscribe
from penstock.runtime import tune_collector as tune_collector
from penstock.streams import CallbackSubscriber as CallbackSubscriber
from penstock.streams import MailboxSubscriber as MailboxSubscriber
from penstock.streams import SlowPolicy as SlowPolicy
from penstock.streams import Source as Source
from penstock.streams import Stream as Stream
from penstock.streams import Streamable as Streamable
from penstock.streams import Topic as Topic
from penstock.streams import as_source as as_source
from penstock.streams import collect as collect
from penstock.streams import empty as empty
from penstock.streams import failed as failed
from penstock.streams import first as first
from penstock.streams import for_each as for_each
from penstock.streams import from_async_iterable as from_async_iterable
from penstock.streams import from_batches as from_batches
from penstock.streams import from_channel as from_channel
from penstock.streams import from_iterable as from_iterable
from penstock.streams import from_publisher as from_publisher
from penstock.streams import generate as generate
from penstock.streams import interval as interval
from penstock.streams import ops as ops
from penstock.streams import single as single
from penstock.streams import timer as timer
from penstock.streams import to_channel as to_channel
from penstock.streams.ops import pipe as pipe
from penstock.streams.ops import processor as processor
from penstock.workers import Worker as Worker
from penstock.workers import serve_workers as serve_workers
from penstock.workers import this_worker as this_worker
