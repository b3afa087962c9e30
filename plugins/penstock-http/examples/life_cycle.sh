# Reads a stream with curl alone: sh life_cycle.sh http://127.0.0.1:7002
publisher=$1/p/numbers/3

# Subscribe with a demand of 2. The answer has the URL of the subscription, relative to the one of the publisher.
location=$(curl -s -i -X PUT "$publisher?request=2" | tr -d '\r' | sed -n 's/^Location: //p')
stream=${publisher%/*}/$location

poll() { curl -s -X PUT -H 'Accept-Encoding: identity' -w ' (%{http_code})\n' "$1"; }

poll "$stream"              # an element
poll "$stream"              # another one
poll "$stream"              # no demand is left: nothing comes
poll "$stream?request=5"    # more demand, and the last element
poll "$stream"              # the stream has completed
poll "$stream/cancel"       # there is nothing to cancel any more
poll "$1/p/nowhere"         # no such publisher
