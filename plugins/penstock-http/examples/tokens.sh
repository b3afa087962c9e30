# Reads an answer as pages do: sh tokens.sh http://127.0.0.1:7002
subscribe() {
    publisher=$base/streams/p/$1
    location=$(curl -s -i -X PUT "$publisher" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
    stream=${publisher%/*}/$location
}
tokens() { curl -s -N "$stream/events?text=1" | grep --line-buffered '^data' | head -n "$1"; }

base=$1
subscribe "answer/why?request=100000"
tokens 3
page=$stream

subscribe "kept/why?start=1&request=100000" # a second page, from a position of the same answer
tokens 2

curl -s -X POST "$page/cancel"              # the first page is closed: http.js sends this
curl -s "$base/stopped"

subscribe "answer/why?request=100000"
tokens 2                                    # the network of the page is gone: nothing is sent
curl -s "$base/stopped"                     # after http.idle
