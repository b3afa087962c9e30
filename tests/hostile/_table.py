"""The table of answers: all rows, by protocol and chapter."""

from tests.hostile._row import Row, Target
from tests.hostile._rows_before_hello import BEFORE
from tests.hostile._rows_connections import CONNECTIONS
from tests.hostile._rows_floods import FLOODS
from tests.hostile._rows_messages import MESSAGES
from tests.hostile._rows_publishers import PUBLISHERS
from tests.hostile._rows_requests import DATA
from tests.hostile._rows_resume import LOST
from tests.hostile._rows_streams import STREAMS
from tests.hostile._rs_rows_floods import FLOODS as RS_FLOODS
from tests.hostile._rs_rows_frames import BEFORE_SETUP, FRAMES
from tests.hostile._rs_rows_requests import REQUESTS
from tests.hostile._rs_rows_responses import RESPONSES

CHAPTERS: dict[str, list[Row]] = {
    "Before the hello": BEFORE,
    "Messages": MESSAGES,
    "Streams": STREAMS,
    "Requests with data, by the extension *requests*": DATA,
    "Publishers, and the servers they are at": PUBLISHERS,
    "Connections": CONNECTIONS,
    "Lost connections, by the extension *resume*": LOST,
    "Floods, and peers that do not read or are gone": FLOODS,
}
RS_CHAPTERS: dict[str, list[Row]] = {
    "Before SETUP": BEFORE_SETUP,
    "Frames": FRAMES,
    "Requests": REQUESTS,
    "Responses, and the servers that send them": RESPONSES,
    "Floods, and peers that do not read or are gone": RS_FLOODS,
}
ROWS = [row for rows in (*CHAPTERS.values(), *RS_CHAPTERS.values()) for row in rows]
AGAINST_SERVERS = [
    (row, scheme) for row in ROWS if row.target is Target.SERVER for scheme in row.schemes
]
AGAINST_CLIENTS = [
    (row, scheme) for row in ROWS if row.target is Target.CLIENT for scheme in row.schemes
]
