# Reads an answer as a page does: sh tokens.sh http://127.0.0.1:7002
publisher=$1/streams/p/answer/why

subscribe() {
    location=$(curl -s -i -X PUT "$publisher?request=100000" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
    stream=${publisher%/*}/$location
}
tokens() { curl -s -N "$stream/events?text=1" | grep --line-buffered '^data' | head -n "$1"; }

subscribe
tokens 3
curl -s -X POST "$stream/cancel"    # the page is closed: http.js sends this
curl -s "$1/stopped"

subscribe
tokens 2                            # the network of the page is gone: nothing is sent
curl -s "$1/stopped"                # after http.idle
